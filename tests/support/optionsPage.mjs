// Makes docs/reference/options.md from the doc comments of the option interfaces: `node
// tests/support/optionsPage.mjs` writes it.
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import prettier from "prettier";
import ts from "typescript";

const root = new URL("../../", import.meta.url);
const PAGE = fileURLToPath(new URL("docs/reference/options.md", root));

/** Headings of the page with the interface whose keys they list. */
const SECTIONS = [
  ["hubOptions", "SharedHubOptions", "A hub: `new McpHub(options)`"],
  ["hubOptions", "McpHubOptions", "Servers and security of a hub"],
  ["hubOptions", "AdapterOptions", "Options of `MultiServerMCPClient` that keep working"],
  ["budgetOptions", "TimeoutOptions", "`timeouts`"],
  ["budgetOptions", "AgentTimeoutOptions", "`timeouts` that an agent can set as well"],
  ["budgetOptions", "LimitOptions", "`limits`"],
  ["budgetOptions", "AgentLimitOptions", "`limits` that an agent can set as well"],
  ["hubOptions", "SearchOptions", "`search`"],
  ["securityOptions", "SecurityOptions", "`security`"],
  ["securityOptions", "UrlGuardOptions", "`security.urlGuard`"],
  ["securityOptions", "ConsentOptions", "`security.consent`"],
  ["securityOptions", "ToolFingerprintOptions", "`security.toolFingerprints`"],
  ["policyOptions", "PolicyRules", "`policy`"],
  ["serverOptions", "McpServerEntry", "One server: how it is reached"],
  ["serverOptions", "ReconnectOptions", "`reconnect` and `restart`"],
  ["serverOptions", "WrappedServerEntry", "One server: how its tools are offered"],
  ["policyOptions", "ServerPolicyOptions", "One server: who may do what"],
  ["policyOptions", "ToolOverride", "`overrides`"],
  ["hubOptions", "McpWrapOptions", "A wrapped client: `McpHub.wrap(client, options)`"],
  ["securityOptions", "WrapSecurityOptions", "`security` of a wrapped client"],
  ["agentOptions", "McpAgentOptions", "An agent: `mcpMiddleware(hub, options)`"],
];

const HEAD = `# Options

Durations end in \`Ms\` (milliseconds), sizes in \`Chars\` (UTF-16 characters). A wrong option throws an \`McpConfigError\` when the hub or the middleware is made; the message names the option, its value, the allowed values, and the place or the nearest known name of an unknown one. \`undefined\` means left out. A setting of one server wins over the same setting of the hub. This page is made from the doc comments that your editor shows.
`;

export async function optionsPage() {
  const sections = SECTIONS.map(([file, name, heading]) => {
    const rows = keysOf(file, name).map(
      ({ key, text, fallback }) => `| \`${key}\` | ${fallback} | ${text} |`,
    );
    return `## ${heading}\n\n| option | default | meaning |\n| --- | --- | --- |\n${rows.join("\n")}\n`;
  });
  return prettier.format([HEAD, ...sections].join("\n"), {
    ...(await prettier.resolveConfig(PAGE)),
    parser: "markdown",
  });
}

function keysOf(file, name) {
  const path = fileURLToPath(new URL(`src/config/${file}.ts`, root));
  const source = ts.createSourceFile(
    path,
    readFileSync(path, "utf8"),
    ts.ScriptTarget.Latest,
    true,
  );
  const declared = source.statements.find((statement) => statement.name?.text === name);
  const members = declared.members ?? declared.type.types.find((type) => type.members).members;
  return members.map((member) => {
    const [doc] = ts.getJSDocCommentsAndTags(member);
    const fallback = doc?.tags?.find((tag) => tag.tagName.text === "default")?.comment ?? "";
    return {
      key: member.name.text,
      text: cell(ts.getTextOfJSDocComment(doc?.comment) ?? ""),
      fallback: shown(cell(fallback)),
    };
  });
}

function cell(text) {
  return text.replace(/\s+/g, " ").replaceAll("|", "\\|").trim();
}

/** Numbers with commas, values as code. */
function shown(text) {
  if (/^[\d_]+$/.test(text)) return Number(text.replaceAll("_", "")).toLocaleString("en-US");
  return /^("[\w-]+"|true|false)$/.test(text) ? `\`${text}\`` : text;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(PAGE, await optionsPage());
