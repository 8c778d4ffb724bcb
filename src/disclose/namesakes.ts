import type { ToolEntry } from "../catalog/toolEntry.js";
import type { View } from "./view.js";

/** True for a name that only one of ours can have. */
export function isOurPrefix(name: string): boolean {
  return name.startsWith("mcp__");
}

/** Tools of any server with this raw name that may be shown. */
export function namesakesOf(view: View, name: string): ToolEntry[] {
  return view.catalog.toolsNamed(name).filter((entry) => view.shows(entry));
}
