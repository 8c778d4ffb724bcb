import { getDefaultEnvironment } from "@modelcontextprotocol/sdk/client/stdio.js";

import type { StdioParameters } from "./stdioTransport.js";

/* Variables that Windows programs need besides the SDK's defaults. */
const WINDOWS_ENVIRONMENT = [
  "PATHEXT",
  "COMSPEC",
  "WINDIR",
  "PROGRAMDATA",
  "PROGRAMFILES(X86)",
  "COMMONPROGRAMFILES",
  "TMP",
];

/** Environment of a stdio child: the SDK's defaults, then the inherited names, then `env`. */
export function childEnvironment(
  { env, inheritEnv }: Pick<StdioParameters, "env" | "inheritEnv">,
  platform: NodeJS.Platform = process.platform,
  own: NodeJS.ProcessEnv = process.env,
): Record<string, string> {
  const names = platform === "win32" ? [...WINDOWS_ENVIRONMENT, ...inheritEnv] : inheritEnv;
  return {
    ...getDefaultEnvironment(),
    ...inheritedEnvironment({ inheritEnv: names }, own),
    ...env,
  };
}

/** The variables of this process that the child gets as well. */
export function inheritedEnvironment(
  { inheritEnv }: Pick<StdioParameters, "inheritEnv">,
  own: NodeJS.ProcessEnv = process.env,
): Record<string, string> {
  return Object.fromEntries(
    inheritEnv.flatMap((name) => (own[name] === undefined ? [] : [[name, own[name]] as const])),
  );
}
