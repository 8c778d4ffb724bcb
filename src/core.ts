export { DEFAULTS } from "./config/defaults.js";
export type {
  ActionRequest,
  AskDecision,
  AskRequest,
  AskResponse,
  OnAsk,
} from "./config/askSchema.js";
export type { McpAgentOptions } from "./config/agentOptions.js";
export type {
  AgentLimitOptions,
  AgentTimeoutOptions,
  LimitOptions,
  TimeoutOptions,
} from "./config/budgetOptions.js";
export type {
  ConsentOptions,
  ConsentRequest,
  ConsentStore,
  HostLookup,
  OnConsent,
  ResolvedAddress,
  SecurityOptions,
  ToolFingerprintOptions,
  UrlGuardOptions,
  WrapSecurityOptions,
} from "./config/securityOptions.js";
export type {
  AdapterOptions,
  McpHubOptions,
  McpWrapOptions,
  Rerank,
  RerankCandidate,
  ResultStore,
  SearchOptions,
  SharedHubOptions,
  SnapshotStore,
} from "./config/hubOptions.js";
export { loadMcpConfig } from "./config/configFile.js";
export type {
  DecisionKind,
  McpRunContext,
  PolicyTier,
  PolicyAnswer,
  PolicyFunction,
  PolicyOptions,
  PolicyRequest,
  PolicyRules,
  ServerPolicyOptions,
  ToolClass,
  ToolOverride,
} from "./config/policyOptions.js";
export type {
  McpServerEntry,
  ReconnectOptions,
  WrappedServerEntry,
} from "./config/serverOptions.js";
export type { SecretResolver } from "./config/variables.js";
export type { ServerSnapshot } from "./catalog/catalog.js";
export { boundName } from "./catalog/names.js";
export type { McpTool, McpToolMetadata } from "./call/mcpTool.js";
export type { ToolChange, ToolField, ToolTexts } from "./catalog/toolFingerprints.js";
export type { JsonSchema, RawTool, ToolAnnotations } from "./catalog/toolEntry.js";
export type { CallOutcome, ImageBlock, McpArtifact } from "./call/result.js";
export type { McpStreamEvent } from "./call/runStream.js";
export type { ConsentRecord, McpConsents } from "./connect/stdio/consents.js";
export type { WrappableClient } from "./connect/open/wrapped.js";
export type { ConnectReport } from "./connect/pool.js";
export type { ServerStatus } from "./connect/status.js";
export type { ViewOptions } from "./disclose/view.js";
export * from "./errors.js";
export type { ConnectionState, McpEventName, McpEvents, RunOrigin, WarningCode } from "./events.js";
export { McpHub, type FoundTool } from "./hub/mcpHub.js";
export type {
  ArgumentCompletion,
  CompletionReference,
  OperationOptions,
} from "./hub/hubOperations.js";
export type { PromptArgument } from "./input/commandLine.js";
export type { McpCommand } from "./input/commands.js";
export { commandOriginOf, type McpCommandOrigin } from "./input/typed.js";
export { previewContext, type ContextPreview } from "./agent/previewContext.js";
export {
  mcpStateSchema,
  type CachedMcpResource,
  type McpActivation,
  type McpThreadState,
  type Promotion,
} from "./state.js";
