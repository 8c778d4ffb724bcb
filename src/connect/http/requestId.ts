/** The id of the JSON-RPC request in a body; `undefined` for an answer or a notification. */
export function requestIdOf(body: unknown): string | number | undefined {
  if (typeof body !== "string") return undefined;
  try {
    const { id, method } = JSON.parse(body) as {
      readonly id?: string | number;
      readonly method?: string;
    };
    return method === undefined ? undefined : id;
  } catch {
    return undefined;
  }
}
