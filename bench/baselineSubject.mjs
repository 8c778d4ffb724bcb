// The hub in the shape of `MultiServerMCPClient`, for scripts that measure that class: constructor,
// getTools, getClient, close. Run `npm run build` first, then name this file as the class under
// test.
import { McpHub } from "../dist/core.js";

export class MultiServerMCPClient {
  #hub;

  constructor(options) {
    const rest = options.mcpServers === undefined ? { mcpServers: options } : { ...options };
    delete rest.outputHandling;
    this.#hub = new McpHub({
      onConnectionError: "throw",
      names: "bare",
      envelope: false,
      warnings: "silent",
      ...rest,
    });
  }

  getTools(...serverNames) {
    const servers = serverNames.flat().filter((name) => typeof name === "string");
    return this.#hub.getTools(servers.length === 0 ? {} : { servers });
  }

  getClient(serverName) {
    return this.#hub.getClient(serverName);
  }

  close() {
    return this.#hub.close();
  }
}
