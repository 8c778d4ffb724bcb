const notes = new WeakMap<object, readonly string[]>();

/** Keeps what was left out of the files that these servers were read from, in sentences. */
export function keepNotes(mcpServers: object, sentences: readonly string[]): void {
  notes.set(mcpServers, sentences);
}

/** What was left out of the files that these servers were read from, in sentences. */
export function notesOf(mcpServers: object): readonly string[] {
  return notes.get(mcpServers) ?? [];
}
