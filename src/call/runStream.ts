import { dispatchCustomEvent } from "@langchain/core/callbacks/dispatch/web";
import type { RunnableConfig } from "@langchain/core/runnables";

/**
 * Events that a run streams while its tools work. Graphs write them to the custom stream
 * (`streamMode: "custom"`); `streamEvents` and callback handlers get custom events named after
 * `type`.
 */
export type McpStreamEvent =
  /** A server reported progress of a call. `message` is untrusted server text. */
  | {
      readonly type: "mcp_progress";
      readonly serverName: string;
      /** The tool's name on its server. */
      readonly toolName: string;
      readonly toolCallId: string;
      readonly progress: number;
      readonly total?: number | undefined;
      readonly message?: string | undefined;
    }
  /** A search ran. `matches` are bound names, best first. */
  | {
      readonly type: "mcp_search";
      readonly toolCallId: string;
      readonly query: string;
      readonly matches: readonly string[];
      readonly latencyMs: number;
    };

/**
 * Streams an event to the run that a tool works in. Never throws; does nothing outside of a run.
 */
export async function tellRun(
  config: RunnableConfig | undefined,
  event: McpStreamEvent,
): Promise<void> {
  if (config === undefined) return;
  try {
    (config as { readonly writer?: (chunk: McpStreamEvent) => void }).writer?.(event);
    // Without callbacks there is no parent run to dispatch to.
    if (config.callbacks !== undefined) await dispatchCustomEvent(event.type, event, config);
  } catch {
    // A closed stream or a throwing handler must not fail the tool.
  }
}
