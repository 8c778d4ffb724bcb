// Schemas and results: what the model gets of a result, what stays with your application, and where
// large ones go. Run it with `npx tsx examples/11-results.ts`; it needs no network and no keys.
import { InMemoryStore } from "@langchain/core/stores";
import { McpHub } from "langchain-mcp-middleware";

const resultStore = new InMemoryStore<unknown>();
await using hub = new McpHub({
  mcpServers: { everything: { command: "npx", args: ["mcp-server-everything"] } },
  resultStore,
  limits: { maxResultChars: 400, maxArtifactChars: 20_000 },
});

// %% 1. An image
// It goes to the model as an image, in the place where its client takes one. The text never holds
// its data.
const picture = await hub.callTool("everything", "get-tiny-image", {});
console.log(picture.images.map(({ image_url }) => JSON.stringify(image_url).slice(8, 29)));
// → [ 'data:image/png;base64' ]
console.log(picture.content.includes("base64"));
// → false

// %% 2. Links
// A link is one line with a mention that can be used later. Nothing is fetched; the whole block is
// in the artifact.
const links = await hub.callTool("everything", "get-resource-links", { count: 1 });
console.log(links.content.includes("@everything:"), links.artifact.blocks.length);
// → true 1

// %% 3. Structured content
// Beside text it is for your application.
const weather = await hub.callTool("everything", "get-structured-content", { location: "Chicago" });
console.log(Object.keys(weather.artifact.structuredContent ?? {}));
// → [ 'temperature', 'conditions', 'humidity' ]

// %% 4. A result that is too large
// The model reads its beginning and its end. What is too large for the artifact as well goes to the
// store whole.
const large = await hub.callTool("everything", "echo", { message: "word ".repeat(10_000) });
const { storeKey = "" } = large.artifact.truncated ?? {};
const [stored] = await resultStore.mget([storeKey]);
console.log(large.content.length < 700, JSON.stringify(stored).length > 50_000);
// → true true

// %% 5. Arguments that models get wrong
// Arguments sent as one JSON text are parsed. What does not fit is not sent, and the error says
// what is expected.
const sum = await hub.callTool("everything", "get-sum", '{"a":2,"b":3}');
console.log(sum.content.split("\n")[1]);
// → The sum of 2 and 3 is 5.
