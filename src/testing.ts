export * from "./core.js";
export type { McpTestAnswer, McpTestCall, McpTestValue } from "./testing/answers.js";
export {
  createMcpTestHub,
  McpTestHub,
  type McpTestHubCall,
  type McpTestHubOptions,
  type McpTestServerEntry,
} from "./testing/createMcpTestHub.js";
export { recordMcpServers, type McpRecording, type RecordedTool } from "./testing/recording.js";
