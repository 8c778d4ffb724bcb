import type { HubEvents } from "../events.js";
import type { Policy } from "./policy.js";

/** Warns about parts of a policy that have no effect, or an unexpected one. */
export function warnAboutPolicy(policy: Policy, events: HubEvents): void {
  for (const rule of policy.unusedRules()) {
    events.warn(
      "RULE_WITHOUT_SERVER",
      `The policy rule "${rule}" names no configured server.`,
      rule,
    );
  }
  for (const serverName of policy.serversWithoutClasses()) {
    events.warn(
      "TIER_WITHOUT_CLASSES",
      `Server "${serverName}" has a tier that treats reading apart, but nothing says which of its tools only read: all are taken for destructive. Set trustAnnotations: true, or give overrides such as { "get_*": { class: "read" } }.`,
      serverName,
    );
  }
}
