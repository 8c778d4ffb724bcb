import { ToolMessage, type MessageContent } from "@langchain/core/messages";
import { isGraphBubbleUp } from "@langchain/langgraph";

import { describeLink, isForUserAlone } from "../call/contentBlock.js";
import type { Caller } from "../call/caller.js";
import type { ServerReads } from "../call/serverReads.js";
import type { McpArtifact } from "../call/result.js";
import { McpTool, type RunTool } from "../call/mcpTool.js";
import { oneLine } from "../text/clean.js";
import type { JsonSchema } from "../catalog/toolEntry.js";
import { isRecord } from "../text/isRecord.js";
import { RESOURCE_TOOL_NAMES } from "../disclose/thread.js";
import type { View } from "../disclose/view.js";
import type { Operation } from "../policy/operation.js";
import { failureText } from "../call/failureText.js";
import { HAS_NO_RESOURCES } from "./readMentions.js";
import { excerptOf, renderResource } from "./resourceContents.js";

export type ResourceToolName = (typeof RESOURCE_TOOL_NAMES)[number];

const [LIST, READ] = RESOURCE_TOOL_NAMES;

const SERVER = { type: "string", description: "Name of the MCP server" } as const;
const DEFINITIONS: Readonly<
  Record<ResourceToolName, { readonly description: string; readonly schema: JsonSchema }>
> = {
  [LIST]: {
    description:
      "Lists the resources (files, records, documents) that MCP servers have, and the templates of URIs they can be asked for. Read one with mcp_resources_read.",
    schema: {
      type: "object",
      properties: {
        server: {
          ...SERVER,
          description: "Name of the MCP server. Default: all that have resources",
        },
        page: { type: "integer", minimum: 1, description: "Page of a long list. Default 1" },
      },
    },
  },
  [READ]: {
    description:
      "Reads a resource of an MCP server by its URI: one from mcp_resources_list, from a result, or made from a template.",
    schema: {
      type: "object",
      properties: {
        server: SERVER,
        uri: { type: "string", description: "The URI, without @ and server name" },
      },
      required: ["server", "uri"],
    },
  },
};

const MAX_PAGE_CHARS = 8_000;
const LISTS = ["resources", "resourceTemplates"] as const;

export interface ResourceToolContext {
  readonly reads: ServerReads;
  readonly view: View;
  readonly maxResourceChars: number;
  /** Maximum characters of the images of one result. */
  readonly maxArtifactChars: number;
}

/** The operation that a call needs; `undefined` when its arguments name no server or no URI. */
export function resourceOperation(name: string, args: unknown): Operation | undefined {
  if (!isRecord(args) || typeof args["server"] !== "string") return undefined;
  const serverName = args["server"];
  if (name === LIST) return { kind: "list", serverName };
  return name === READ && typeof args["uri"] === "string"
    ? { kind: "read", serverName, uri: args["uri"] }
    : undefined;
}

export function resourceTool(name: ResourceToolName, run: RunTool): McpTool {
  const { description, schema } = DEFINITIONS[name];
  return new McpTool({ name, description, schema, metadata: {}, run });
}

interface Answer {
  readonly serverName: string;
  readonly text: string;
  readonly isError?: boolean;
  readonly images?: readonly string[];
}

type Run = (
  args: Readonly<Record<string, unknown>>,
  context: ResourceToolContext,
  caller: Caller,
) => Promise<Answer>;

/** Runs a call. Failures become an error answer; aborts and graph interrupts are thrown. */
export async function runResourceTool(
  name: ResourceToolName,
  given: unknown,
  context: ResourceToolContext,
  caller: Caller,
): Promise<ToolMessage> {
  const startedAt = performance.now();
  const args = isRecord(given) ? given : {};
  let answer: Answer;
  try {
    answer = await (name === LIST ? listResources : readResource)(args, context, caller);
  } catch (error) {
    if (isGraphBubbleUp(error) || caller.signal?.aborted === true) throw error;
    const text = failureText(
      error,
      name === LIST ? "this list" : "this resource",
      HAS_NO_RESOURCES,
    );
    answer = {
      serverName: typeof args["server"] === "string" ? args["server"] : "",
      text,
      isError: true,
    };
  }
  const { serverName, text, isError = false, images = [] } = answer;
  const artifact: McpArtifact = {
    serverName,
    toolName: name,
    durationMs: performance.now() - startedAt,
    isError,
    blocks: [],
  };
  const pictures = images.map((url) => ({ type: "image_url" as const, image_url: { url } }));
  const content: MessageContent =
    pictures.length === 0 ? text : [{ type: "text", text }, ...pictures];
  const status = isError ? "error" : "success";
  return new ToolMessage({
    content,
    name,
    tool_call_id: caller.toolCallId ?? "",
    artifact,
    status,
  });
}

const readResource: Run = async (
  { server, uri },
  { reads, view, maxResourceChars, maxArtifactChars },
  caller,
) => {
  if (typeof server !== "string" || typeof uri !== "string" || uri === "") {
    return {
      serverName: "",
      text: 'Give "server" and "uri", both as text. mcp_resources_list shows what there is.',
      isError: true,
    };
  }
  if (!view.serverNames.includes(server)) return unknownServer(server, view);
  const result = await reads.readResource({ serverName: server, uri }, caller);
  const excerpt = excerptOf(result, uri, maxResourceChars);
  const text = renderResource(server, uri, excerpt, maxResourceChars);
  const imageChars = excerpt.images.reduce((sum, image) => sum + image.length, 0);
  if (imageChars <= maxArtifactChars) return { serverName: server, text, images: excerpt.images };
  return { serverName: server, text: `${text}\n[Its images are too large to be shown.]` };
};

const listResources: Run = async ({ server, page }, { reads, view }, caller) => {
  if (typeof server === "string" && !view.serverNames.includes(server))
    return unknownServer(server, view);
  const serverNames = typeof server === "string" ? [server] : withResources(view);
  const lists = await Promise.all(
    serverNames.map((serverName) => linesOf(serverName, reads, caller)),
  );
  return {
    serverName: typeof server === "string" ? server : "",
    text: pageOf(lists.flat(), typeof page === "number" ? page : 1),
  };
};

/**
 * One line for each resource and template of a server, or one line that says why there are none.
 */
async function linesOf(serverName: string, reads: ServerReads, caller: Caller): Promise<string[]> {
  const name = oneLine(serverName, 64);
  try {
    const [resources, templates] = await Promise.all(
      LISTS.map((key) => reads.list(serverName, key, caller)),
    );
    const lines = [
      ...resources!.filter(isShown).map((resource) => `- ${describeLink(resource, serverName)}`),
      ...templates!
        .filter(isShown)
        .map(
          (template) =>
            `- ${describeLink({ ...template, uri: template["uriTemplate"] }, serverName)} [template: fill in the braces]`,
        ),
    ];
    return lines.length === 0 ? [`Server ${name} lists no resources.`] : lines;
  } catch (error) {
    caller.signal?.throwIfAborted();
    return [failureText(error, "this list", HAS_NO_RESOURCES)];
  }
}

function isShown(value: unknown): value is Record<string, unknown> {
  return isRecord(value) && !isForUserAlone(value);
}

/** The lines of one page, with a pointer to the rest. */
function pageOf(lines: readonly string[], page: number): string {
  const pages: string[][] = [[]];
  let chars = 0;
  for (const line of lines) {
    if (chars + line.length + 1 > MAX_PAGE_CHARS && chars > 0) {
      pages.push([]);
      chars = 0;
    }
    pages.at(-1)!.push(line);
    chars += line.length + 1;
  }
  if (lines.length === 0) return "No server has resources.";
  const wanted = Math.min(Math.max(1, Math.floor(page)), pages.length);
  const rest = pages.slice(wanted).reduce((sum, next) => sum + next.length, 0);
  const more = rest === 0 ? [] : [`… and ${rest} more: ask for page ${wanted + 1}.`];
  return [
    "Resources as @server:uri (names and descriptions are the servers' own):",
    ...pages[wanted - 1]!,
    ...more,
  ].join("\n");
}

function withResources(view: View): string[] {
  return view
    .servers()
    .flatMap(({ serverName, hasResources }) => (hasResources ? [serverName] : []));
}

function unknownServer(serverName: string, view: View): Answer {
  const names = withResources(view).map((name) => oneLine(name, 64));
  const hint = names.length === 0 ? "" : ` Servers with resources: ${names.join(", ")}.`;
  return {
    serverName,
    text: `There is no server "${oneLine(serverName, 64)}".${hint}`,
    isError: true,
  };
}
