import { MessageBudget } from "../messageBudget.js";

const EVENT_ENDS = ["\n\n", "\r\r", "\r\n\r\n"].map((end) => Buffer.from(end));
const LONGEST_END = 4;

/**
 * A response whose body fails once one message is too large; in an event stream each event counts
 * alone.
 */
export function withLimitedBody(response: Response, maxBytes: number): Response {
  if (response.body === null) return response;
  const isStream =
    response.headers.get("content-type")?.toLowerCase().startsWith("text/event-stream") === true;
  const budget = new MessageBudget(maxBytes);
  let before = Buffer.alloc(0);
  const counted = new TransformStream<Uint8Array, Uint8Array>({
    transform: (chunk, controller) => {
      const text = isStream ? Buffer.concat([before, chunk]) : before;
      const end = lastEventEnd(text) - before.length;
      if (end >= 0) budget.reset();
      before = text.subarray(1 - LONGEST_END);
      budget.take(end < 0 ? chunk : chunk.subarray(end));
      controller.enqueue(chunk);
    },
  });
  const { status, statusText, headers } = response;
  return new Response(response.body.pipeThrough(counted), { status, statusText, headers });
}

function lastEventEnd(text: Buffer): number {
  return Math.max(
    ...EVENT_ENDS.map((end) => {
      const at = text.lastIndexOf(end);
      return at < 0 ? -1 : at + end.length;
    }),
  );
}
