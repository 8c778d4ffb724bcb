// Search: the ranking the model uses, your own words, and an order of your own.
// Run it with `npx tsx examples/12-search.ts`; it needs no network and no keys.
import { McpHub } from "langchain-mcp-middleware";

const mcpServers = {
  files: { command: "npx", args: ["mcp-server-filesystem", "examples"] },
  memory: { command: "npx", args: ["mcp-server-memory"] },
};

// %% 1. Words
// A few plain words, or a name from the listing, with or without its server.
await using hub = new McpHub({ mcpServers });
await hub.connect();
const find = async (query: string) =>
  (await hub.search(query, { limit: 2 })).map(({ toolName }) => toolName);
console.log(await find("rename a file"));
// → [ 'move_file' ]
console.log((await find("please use read_graph")).slice(0, 1));
// → [ 'read_graph' ]

// %% 2. Your own words
// Keywords of a server, or of single tools, count as the server's own words.
await using taught = new McpHub({
  mcpServers: {
    files: { ...mcpServers.files, keywords: ["disk"] },
    memory: { ...mcpServers.memory, toolKeywords: { read_graph: ["brain dump"] } },
  },
});
await taught.connect();
console.log((await taught.search("disk", { limit: 1 })).map(({ serverName }) => serverName));
// → [ 'files' ]
console.log((await taught.search("brain dump", { limit: 1 })).map(({ toolName }) => toolName));
// → [ 'read_graph' ]

// %% 3. Your own order
// A function, such as a call of a reranking model, orders the candidates. When it fails, the words'
// order stays.
await using reranked = new McpHub({
  mcpServers,
  search: { rerank: (_query, candidates) => candidates.map(({ name }) => name).sort() },
});
await reranked.connect();
console.log((await reranked.search("read a file", { limit: 3 })).map(({ toolName }) => toolName));
// → [ 'get_file_info', 'read_file', 'read_media_file' ]
