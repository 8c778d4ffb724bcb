export { createMcpSession, McpSession, type McpSessionInput, type McpSessionOptions, type McpTurn } from "./chain/session.js";
export * from "./core.js";
export type { ModelRequest, RequestTool } from "./modelRequest.js";
