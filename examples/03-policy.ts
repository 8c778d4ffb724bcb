// Policy: reading is free, writing is asked, deleting is denied, on the real filesystem server.
// Run it with `npx tsx examples/03-policy.ts`; it needs no network and no keys.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import { fakeModel } from "@langchain/core/testing";
import { Command, MemorySaver, type Interrupt } from "@langchain/langgraph";
import { createAgent } from "langchain";
import {
  McpHub,
  mcpMiddleware,
  previewContext,
  type AskDecision,
  type AskRequest,
} from "langchain-mcp-middleware";

const folder = mkdtempSync(join(tmpdir(), "policy-"));
const path = (name: string) => join(folder, name);
writeFileSync(path("notes.txt"), "milk");

await using hub = new McpHub({
  mcpServers: {
    files: {
      command: "npx",
      args: ["mcp-server-filesystem", folder],
      tier: "cautious", // reading is allowed, anything else is asked
      trustAnnotations: true, // this server's own hints say which tools read
    },
  },
  policy: { deny: ["mcp:call:files:move_file", "mcp:call:*:*delete*"] },
});
await hub.connect();

// %% 1. What is denied does not exist
// The server has a tool that takes files away by moving them. The model never reads its name.
const { listing } = await previewContext(hub, {}, { limits: { listingBudgetChars: 4_000 } });
console.log(
  hub.snapshot("files")!.tools.some(({ name }) => name === "move_file"),
  listing.includes("move_file"),
);
// → true false

// %% 2. One step: a read, two writes, a move
// The scripted model wants all at once. Nothing runs before a person has seen the writes, both in
// one interrupt.
const call = (id: string, name: string, args: Record<string, unknown>) => ({
  type: "tool_call" as const,
  id,
  name,
  args,
});
const model = fakeModel()
  .respond(
    new AIMessage({
      content: "",
      tool_calls: [
        call("read", "mcp__files__read_text_file", { path: path("notes.txt") }),
        call("list", "mcp__files__write_file", { path: path("notes.txt"), content: "milk, bread" }),
        call("extra", "mcp__files__write_file", { path: path("secrets.txt"), content: "1234" }),
        call("move", "mcp__files__move_file", {
          source: path("notes.txt"),
          destination: path("gone.txt"),
        }),
      ],
    }),
  )
  .respond(new AIMessage("Bread is on the list."));
// The question waits in the checkpointer: the person may answer tomorrow, to another process.
const agent = createAgent({
  model,
  middleware: [mcpMiddleware(hub)],
  checkpointer: new MemorySaver(),
});
const thread = { configurable: { thread_id: "1" } };
const asked = (await agent.invoke({ messages: "Put bread on the list." }, thread)) as {
  __interrupt__?: Interrupt<AskRequest>[];
};
const { actionRequests } = asked.__interrupt__![0]!.value!;
for (const { callId, toolName, class: toolClass, reason } of actionRequests)
  console.log(callId, toolName, toolClass, "-", reason);
// → list write_file destructive - tier "cautious" of server "files" says ask (destructive)
// → extra write_file destructive - tier "cautious" of server "files" says ask (destructive)

// %% 3. The answer
// Approve, edit or reject each; with `callId` the order does not matter. An approval holds for
// exactly these arguments.
const decisions: AskDecision[] = [
  { callId: "extra", type: "reject", message: "No secrets in files.", answeredBy: "ann" },
  {
    callId: "list",
    type: "edit",
    editedAction: { args: { path: path("notes.txt"), content: "milk, rye bread" } },
  },
];
const done = (await agent.invoke(new Command({ resume: { decisions } }), thread)) as {
  messages: BaseMessage[];
};
const answer = (id: string) =>
  done.messages.find((message) => "tool_call_id" in message && message.tool_call_id === id)!;
console.log(answer("read").text.split("\n")[1]);
// → milk
console.log(answer("list").text.split("\n")[0]!.replaceAll(folder, "…"));
// → [A person changed the arguments of this call. It ran with: {"path":"…/notes.txt","content":"milk, rye bread"}]
console.log(answer("extra").text);
// → A person rejected this call of mcp__files__write_file; it was not run. Do not repeat it. They said: No secrets in files.
console.log(answer("move").text.split(".")[0]);
// → The tool "mcp__files__move_file" is not available
console.log(
  readFileSync(path("notes.txt"), "utf8"),
  existsSync(path("secrets.txt")),
  existsSync(path("gone.txt")),
);
// → milk, rye bread false false

// %% 4. Rules change while threads run
// From here on nothing is written, in threads that are under way as well; tool objects kept from
// before are no way around.
const kept = (await hub.getTools()).find(({ name }) => name === "mcp__files__write_file")!;
hub.setPolicy({ deny: ["mcp:call:files:*"] });
console.log((await previewContext(hub)).listing === "", await hub.search("write a file"));
// → true []
console.log(await kept.invoke({ path: path("notes.txt"), content: "wiped" }));
// → The tool mcp__files__write_file is not available. Search for what you need.
await hub
  .callTool("files", "read_text_file", { path: path("notes.txt") })
  .catch((error: unknown) => console.log((error as Error).message));
// → mcp:call:files:read_text_file is denied: rule "mcp:call:files:*" says deny.

rmSync(folder, { recursive: true });
