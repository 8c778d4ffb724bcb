import { MAX_BODY_BYTES, tooLarge } from "../failures.js";

const EVENT_ENDS = ["\n\n", "\r\r", "\r\n\r\n"].map((end) => Buffer.from(end));
const LONGEST_END = 4;

/** A response whose body fails once one message exceeds `maxBytes`; in an event stream each event counts alone. */
export function withLimitedBody(response: Response, maxBytes = MAX_BODY_BYTES): Response {
  if (response.body === null) return response;
  const isStream = response.headers.get("content-type")?.toLowerCase().startsWith("text/event-stream") === true;
  let bytes = 0;
  let before = Buffer.alloc(0);
  const counted = new TransformStream<Uint8Array, Uint8Array>({
    transform: (chunk, controller) => {
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

function lastEventEnd(text: Buffer): number {
  return Math.max(
    ...EVENT_ENDS.map((end) => {
      const at = text.lastIndexOf(end);
      return at < 0 ? -1 : at + end.length;
    }),
  );
}
