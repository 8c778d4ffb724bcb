import { dispatchCustomEvent } from "@langchain/core/callbacks/dispatch/web";
import type { RunnableConfig } from "@langchain/core/runnables";

/**
 * What a run tells while its tools work, for user interfaces. Graphs write it to the custom stream (`streamMode: "custom"`);
 * `streamEvents` and callback handlers get it as a custom event whose name is `type`.
 */
export type McpStreamEvent =
  /** A server reported progress of a call. `message` is the server's text: untrusted. */
  | {
      readonly type: "mcp_progress";
      readonly serverName: string;
      /** The server's own name of the tool. */
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

/** Tells the run that a tool works in; without a run nobody. Whoever listens cannot disturb the tool. */
export async function tellRun(config: RunnableConfig | undefined, event: McpStreamEvent): Promise<void> {
  if (config === undefined) return;
  try {
    (config as { readonly writer?: (chunk: McpStreamEvent) => void }).writer?.(event);
    // Without callbacks there is nobody to tell, and no run to name.
    if (config.callbacks !== undefined) await dispatchCustomEvent(event.type, event, config);
  } catch {
    // A stream that was given up, a handler that throws: theirs.
  }
}
