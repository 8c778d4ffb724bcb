export {
  createMcpSession,
  McpSession,
  type McpSessionInput,
  type McpSessionOptions,
  type McpTurn,
} from "./faces/session.js";
export * from "./core.js";
export type { ModelRequest, RequestTool } from "./agent/modelRequest.js";
