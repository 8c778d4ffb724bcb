import { MAX_BODY_BYTES, tooLarge } from "../failures.js";

const EVENT_ENDS = ["\n\n", "\r\r", "\r\n\r\n"].map((end) => Buffer.from(end));
const LONGEST_END = 4;

/** The same response, whose body ends with an error when one message of it is too large: a server may send without end. */
export function withLimitedBody(response: Response, maxBytes = MAX_BODY_BYTES): Response {
  if (response.body === null) return response;
  const isStream = response.headers.get("content-type")?.toLowerCase().startsWith("text/event-stream") === true;
  let bytes = 0;
  let before = Buffer.alloc(0);
  const counted = new TransformStream<Uint8Array, Uint8Array>({
    transform: (chunk, controller) => {
      // The end of an event may lie across two chunks.
      const text = isStream ? Buffer.concat([before, chunk]) : before;
      const end = lastEventEnd(text) - before.length;
      bytes = end < 0 ? bytes + chunk.byteLength : chunk.byteLength - end;
      before = text.subarray(1 - LONGEST_END);
      if (bytes > maxBytes) controller.error(new Error(tooLarge(maxBytes)));
      else controller.enqueue(chunk);
    },
  });
  const { status, statusText, headers } = response;
  return new Response(response.body.pipeThrough(counted), { status, statusText, headers });
}

/** Behind the last event that ends in a text; -1 when none does. */
function lastEventEnd(text: Buffer): number {
  return Math.max(
    ...EVENT_ENDS.map((end) => {
      const at = text.lastIndexOf(end);
      return at < 0 ? -1 : at + end.length;
    }),
  );
}
