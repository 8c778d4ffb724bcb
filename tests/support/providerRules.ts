// What the providers refuse, as they publish it, checked on recorded requests. Each function
// returns what is wrong.
import type { RequestBody, Wire } from "./modelServer.js";

type Json = Record<string, unknown>;
const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const list = (value: unknown): unknown[] => (Array.isArray(value) ? (value as unknown[]) : []);

const NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const TYPES = ["string", "number", "integer", "boolean", "array", "object", "null"];

/** A tool of a request in one form. */
interface SentTool {
  readonly name: string;
  readonly description: string;
  readonly schema: Json;
}

/** Tools of a request. */
export function toolsOf(wire: Wire, body: RequestBody): SentTool[] {
  const tools = list(body["tools"]).filter(isObject);
  const make = (tool: Json, schema: unknown): SentTool => ({
    name: String(tool["name"]),
    description: String(tool["description"] ?? ""),
    schema: isObject(schema) ? schema : {},
  });
  switch (wire) {
    case "anthropic":
      return tools.map((tool) => make(tool, tool["input_schema"]));
    case "openai-chat":
      return tools.map((tool) => tool["function"] as Json).map((fn) => make(fn, fn["parameters"]));
    case "openai-responses":
      return tools.map((tool) => make(tool, tool["parameters"]));
    case "google":
      return tools
        .flatMap((tool) => list(tool["functionDeclarations"]) as Json[])
        .map((fn) => make(fn, fn["parameters"] ?? { type: "object" }));
  }
}

/** What the provider would refuse about the tools of a request. */
export function toolViolations(wire: Wire, body: RequestBody): string[] {
  const tools = toolsOf(wire, body);
  const found: string[] = [];
  if (new Set(tools.map(({ name }) => name)).size !== tools.length)
    found.push("two tools of one name");
  for (const { name, description, schema } of tools) {
    const note = (what: string): void => void found.push(`${name}: ${what}`);
    if (!NAME.test(name)) note("illegal name");
    if (wire === "google") {
      checkGemini(schema, note, "root");
      continue;
    }
    if (wire.startsWith("openai") && description.length > 1_024)
      note(`description of ${description.length} characters`);
    if (schema["type"] !== "object") note("root is not an object");
    for (const keyword of [
      "anyOf",
      "oneOf",
      "allOf",
      ...(wire.startsWith("openai") ? ["enum", "not"] : []),
    ])
      if (keyword in schema) note(`${keyword} at the root`);
    if (wire === "anthropic")
      for (const key of Object.keys(isObject(schema["properties"]) ? schema["properties"] : {}))
        if (!/^[a-zA-Z0-9_.-]{1,64}$/.test(key)) note(`property key ${key}`);
    check2020(schema, schema, note);
  }
  return found;
}

/** Draft 2020-12, and arrays that say what is in them. */
function check2020(root: Json, schema: unknown, note: (what: string) => void, depth = 0): void {
  if (typeof schema === "boolean") return;
  if (!isObject(schema)) return note("a schema that is no object");
  if (depth > 40) return;
  for (const type of [schema["type"]].flat())
    if (type !== undefined && !TYPES.includes(String(type))) note(`type ${String(type)}`);
  if (
    [schema["type"]].flat().includes("array") &&
    schema["items"] === undefined &&
    schema["prefixItems"] === undefined
  )
    note("an array without items");
  if (Array.isArray(schema["items"])) note("a list under items");
  if ("enum" in schema && list(schema["enum"]).length === 0) note("an empty enum");
  if ("required" in schema && !Array.isArray(schema["required"])) note("required is no list");
  for (const keyword of ["exclusiveMinimum", "exclusiveMaximum"])
    if (typeof schema[keyword] === "boolean") note(`boolean ${keyword}`);
  const reference = schema["$ref"];
  if (typeof reference === "string") {
    const name = /^#\/\$defs\/([^/]+)$/.exec(reference)?.[1];
    if (name === undefined || !isObject(root["$defs"]) || !(name in root["$defs"]))
      note(`reference ${reference}`);
  }
  for (const keyword of ["properties", "$defs", "patternProperties"]) {
    for (const inner of Object.values(isObject(schema[keyword]) ? schema[keyword] : {}))
      check2020(root, inner, note, depth + 1);
  }
  for (const keyword of ["anyOf", "oneOf", "allOf"])
    for (const inner of list(schema[keyword])) check2020(root, inner, note, depth + 1);
  for (const keyword of [
    "items",
    "additionalProperties",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
  ]) {
    if (schema[keyword] !== undefined && !Array.isArray(schema[keyword]))
      check2020(root, schema[keyword], note, depth + 1);
  }
}

const GEMINI = new Set(
  "type format title description nullable enum maxItems minItems properties required minProperties maxProperties minLength maxLength pattern example anyOf propertyOrdering default items minimum maximum".split(
    " ",
  ),
);
const GEMINI_FORMATS: Record<string, string[]> = {
  string: ["enum", "date-time"],
  integer: ["int32", "int64"],
  number: ["float", "double"],
};

function checkGemini(schema: unknown, note: (what: string) => void, at: string, depth = 0): void {
  if (!isObject(schema)) return note(`${at}: no schema object`);
  if (depth > 40) return;
  for (const keyword of Object.keys(schema))
    if (!GEMINI.has(keyword)) note(`${at}: unknown field ${keyword}`);
  if (schema["anyOf"] !== undefined) {
    if (Object.keys(schema).length > 1) note(`${at}: anyOf beside ${Object.keys(schema).join()}`);
    for (const inner of list(schema["anyOf"])) checkGemini(inner, note, `${at}|`, depth + 1);
    return;
  }
  const type = schema["type"];
  if (typeof type !== "string" || !TYPES.includes(type) || type === "null")
    note(`${at}: type ${JSON.stringify(type)}`);
  if (
    schema["enum"] !== undefined &&
    (type !== "string" ||
      list(schema["enum"]).length === 0 ||
      !list(schema["enum"]).every((choice) => typeof choice === "string" && choice !== ""))
  )
    note(`${at}: enum`);
  if (
    schema["format"] !== undefined &&
    !(GEMINI_FORMATS[String(type)] ?? []).includes(String(schema["format"]))
  )
    note(`${at}: format ${String(schema["format"])}`);
  if (type === "array") checkGemini(schema["items"], note, `${at}[]`, depth + 1);
  const properties = isObject(schema["properties"]) ? schema["properties"] : {};
  if (at !== "root" && schema["properties"] !== undefined && Object.keys(properties).length === 0)
    note(`${at}: empty properties`);
  for (const name of list(schema["required"]))
    if (!(String(name) in properties)) note(`${at}: required ${String(name)} is not a property`);
  for (const [name, inner] of Object.entries(properties))
    checkGemini(inner, note, `${at}.${name}`, depth + 1);
}

/** What the provider would refuse about the messages of a request. */
export function messageViolations(wire: Wire, body: RequestBody): string[] {
  const found: string[] = [];
  if (wire === "openai-chat") {
    for (const message of list(body["messages"]) as Json[]) {
      if (message["role"] !== "tool") continue;
      if (
        typeof message["content"] !== "string" &&
        !list(message["content"]).every((part) => isObject(part) && part["type"] === "text")
      )
        found.push("a tool message with more than text");
    }
  }
  if (wire === "anthropic") {
    const messages = list(body["messages"]) as Json[];
    const uses = messages
      .flatMap((message) => list(message["content"]) as Json[])
      .filter((block) => block["type"] === "tool_use")
      .map((block) => block["id"]);
    const results = messages
      .flatMap((message) => list(message["content"]) as Json[])
      .filter((block) => block["type"] === "tool_result");
    for (const id of uses)
      if (!results.some((block) => block["tool_use_id"] === id))
        found.push(`tool_use ${String(id)} without result`);
    for (const block of results.flatMap((result) => list(result["content"]) as Json[]))
      if (!["text", "image"].includes(String(block["type"])))
        found.push(`${String(block["type"])} in a tool result`);
  }
  return found;
}
