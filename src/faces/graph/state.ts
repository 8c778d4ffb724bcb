import { Annotation } from "@langchain/langgraph";

import {
  EMPTY_ACTIVATION,
  mcpStateSchema,
  mergeActivation,
  type CachedMcpResource,
  type McpActivation,
  type McpAsked,
  type McpDecisions,
  type McpResources,
  type McpSent,
  type McpTyped,
  type McpUnbound,
} from "../../state.js";

/**
 * Our state fields for your own `StateSchema`.
 * @example
 * const State = new StateSchema({ messages: MessagesValue, ...mcpStateFields });
 */
export const mcpStateFields = mcpStateSchema.fields;

function lastWrite<Value>() {
  return Annotation<Value | undefined>({
    reducer: (_current, next) => next,
    default: () => undefined,
  });
}

/**
 * Our state fields for your own `Annotation.Root`.
 * @example
 * const State = Annotation.Root({ ...MessagesAnnotation.spec, ...mcpAnnotation.spec });
 */
export const mcpAnnotation = Annotation.Root({
  mcpActivation: Annotation<McpActivation>({
    reducer: mergeActivation,
    default: () => EMPTY_ACTIVATION,
  }),
  disabledMcpServers: lastWrite<string[]>(),
  cachedMcpResources: lastWrite<CachedMcpResource[]>(),
  _mcpSent: lastWrite<McpSent>(),
  _mcpUnbound: lastWrite<McpUnbound>(),
  _mcpAsked: lastWrite<McpAsked>(),
  _mcpDecisions: lastWrite<McpDecisions>(),
  _mcpTyped: lastWrite<McpTyped | null>(),
  _mcpConsents: lastWrite<McpAsked | null>(),
  _mcpResources: lastWrite<McpResources>(),
});
