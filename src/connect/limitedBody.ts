import { MAX_BODY_BYTES, tooLarge } from "./failures.js";

const EVENT_ENDS = ["\n\n", "\r\r", "\r\n\r\n"].map((end) => Buffer.from(end));

/** The same response, whose body ends with an error when one message of it is too large: a server may send without end. */
export function withLimitedBody(response: Response, maxBytes = MAX_BODY_BYTES): Response {
  if (response.body === null) return response;
  const isStream = response.headers.get("content-type")?.toLowerCase().startsWith("text/event-stream") === true;
  let bytes = 0;
  const counted = new TransformStream<Uint8Array, Uint8Array>({
    transform: (chunk, controller) => {
      const last = isStream ? lastEventEnd(chunk) : -1;
      bytes = last < 0 ? bytes + chunk.byteLength : chunk.byteLength - last;
      if (bytes > maxBytes) controller.error(new Error(tooLarge(maxBytes)));
      else controller.enqueue(chunk);
    },
  });
  const { status, statusText, headers } = response;
  return new Response(response.body.pipeThrough(counted), { status, statusText, headers });
}

/** Where the last event of a chunk ends; -1 when none does. */
function lastEventEnd(chunk: Uint8Array): number {
  const buffer = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  return Math.max(...EVENT_ENDS.map((end) => buffer.lastIndexOf(end)));
}
