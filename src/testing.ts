export * from "./core.js";
export type { McpTestAnswer, McpTestCall, McpTestValue } from "./faces/testing/answers.js";
export {
  createMcpTestHub,
  McpTestHub,
  type McpTestHubCall,
  type McpTestHubOptions,
  type McpTestServerEntry,
} from "./faces/testing/createMcpTestHub.js";
export {
  recordMcpServers,
  type McpRecording,
  type RecordedTool,
} from "./faces/testing/recording.js";
