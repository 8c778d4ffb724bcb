import type { ToolEntry } from "../catalog/toolEntry.js";
import type { View } from "./view.js";

/** True for names that begin with `mcp__`, as our own bound names do. */
export function isOurPrefix(name: string): boolean {
  return name.startsWith("mcp__");
}

/** Tools of all servers with this raw name that may be shown. */
export function namesakesOf(view: View, name: string): ToolEntry[] {
  return view.catalog.toolsNamed(name).filter((entry) => view.shows(entry));
}
