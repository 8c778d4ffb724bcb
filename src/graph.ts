export * from "./core.js";
export type { ModelRequest, RequestTool } from "./agent/modelRequest.js";
export {
  createMcpGraph,
  McpGraphSchema,
  type McpGraphOptions,
} from "./faces/graph/createMcpGraph.js";
export {
  createMcpNodes,
  type McpGraphState,
  type McpGraphUpdate,
  type McpNodes,
  type McpNodesOptions,
} from "./faces/graph/nodes.js";
export { mcpAnnotation, mcpStateFields } from "./faces/graph/state.js";
