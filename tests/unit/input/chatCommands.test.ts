import { parseChatCommand } from "../../../src/input/chatCommands.js";

const SERVERS = ["docs", "My Server"];
const parse = (text: string, allowed: "off" | "thread" | "all" = "thread") =>
  parseChatCommand(text, SERVERS, allowed);

describe("parseChatCommand", () => {
  it.each(["/mcp", " /mcp ", "/mcp\n"])("lists for %j", (text) => {
    expect(parse(text)).toEqual({ kind: "list" });
  });

  it.each(["/mcpx", "mcp", "say /mcp", "/mcp__docs__p", "", "/MCP"])("leaves %j alone", (text) => {
    expect(parse(text)).toBeUndefined();
  });

  it("enables and disables a server for the thread, whatever its name is", () => {
    expect(parse("/mcp disable docs")).toEqual({ kind: "disable", serverName: "docs" });
    expect(parse("/mcp enable  my server ")).toEqual({ kind: "enable", serverName: "My Server" });
  });

  it("reconnects only where that is allowed, and does nothing when it is off", () => {
    expect(parse("/mcp reconnect docs", "all")).toEqual({ kind: "reconnect", serverName: "docs" });
    expect(parse("/mcp reconnect docs")).toMatchObject({
      kind: "problem",
      text: expect.stringContaining('no "/mcp reconnect"') as string,
    });
    expect(parse("/mcp disable docs", "off")).toBeUndefined();
  });

  it("says what can be typed instead", () => {
    expect(parse("/mcp disble docs")).toEqual({
      kind: "problem",
      text: 'There is no "/mcp disble". Did you mean "/mcp disable"? You can type /mcp enable <server>, /mcp disable <server>.',
    });
    expect(parse("/mcp disable")).toEqual({
      kind: "problem",
      text: "Which server? You can type /mcp enable <server>, /mcp disable <server>. Servers: docs, My Server.",
    });
    expect(parse("/mcp disable nope")).toEqual({
      kind: "problem",
      text: 'There is no server "nope". Servers: docs, My Server.',
    });
  });
});
