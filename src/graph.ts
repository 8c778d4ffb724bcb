export * from "./core.js";
export type { ModelRequest, RequestTool } from "./modelRequest.js";
export { createMcpGraph, McpGraphSchema, type McpGraphOptions } from "./graph/createMcpGraph.js";
export { createMcpNodes, type McpGraphState, type McpGraphUpdate, type McpNodes, type McpNodesOptions } from "./graph/nodes.js";
export { mcpAnnotation, mcpStateFields } from "./graph/state.js";
