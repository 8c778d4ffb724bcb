import { linkSignal } from "../text/abort.js";
import type { Connection } from "../connect/connection.js";
import type { Session } from "../connect/peer.js";
import { callError, type FailedRequest } from "./callError.js";

/**
 * Sends a request over a connection.
 *
 * @param failed - How it is spoken of when it fails.
 * @param isRepeatable - Whether it may run twice.
 * @throws {McpMiddlewareError} when it was not answered, and the abort reason when the signal aborts.
 */
export async function send<Result>(
  connection: Connection,
  failed: FailedRequest,
  isRepeatable: boolean,
  signal: AbortSignal | undefined,
  request: (session: Session, signal: AbortSignal | undefined) => Promise<Result>,
): Promise<Result> {
  let session: Session | undefined;
  // The SDK leaves its listener on the signal it is given; the caller's may live long.
  const linked = signal === undefined ? undefined : linkSignal(signal);
  try {
    return await connection.run(
      signal,
      (open) => {
        session = open;
        const answer = request(open, linked?.signal);
        const { maskContent } = open;
        return maskContent === undefined ? answer : answer.then((result) => maskContent(result));
      },
      isRepeatable,
    );
  } catch (cause) {
    if (signal?.aborted === true) throw signal.reason;
    throw callError(cause, failed, session);
  } finally {
    linked?.unlink();
  }
}
