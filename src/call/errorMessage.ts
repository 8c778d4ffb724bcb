import { ToolMessage } from "@langchain/core/messages";

/** An answer to a tool call that says why nothing ran. */
export function errorMessage(call: { readonly id?: string | undefined; readonly name: string }, text: string): ToolMessage {
  return new ToolMessage({ content: text, name: call.name, tool_call_id: call.id ?? "", status: "error" });
}
