import fc from "fast-check";

import { codeRanges } from "../../../src/input/codeRanges.js";
import { MAX_URI_CHARS, parseMentions } from "../../../src/input/parseMentions.js";

const SERVERS = ["docs", "docs-v2", "docs.old", "my.server", "a-b", "two words", "tracker", "日本"];
const uris = (text: string): string[] =>
  parseMentions(text, SERVERS).map(({ serverName, uri }) => `${serverName} ${uri}`);

describe("parseMentions", () => {
  it.each<[text: string, ...expected: string[]]>([
    // Where a mention begins
    ["@docs:file:///a.md", "docs file:///a.md"],
    ["read @docs:file:///a.md please", "docs file:///a.md"],
    [
      "compare @docs:file:///a.md with @tracker:issue://42",
      "docs file:///a.md",
      "tracker issue://42",
    ],
    ["line\n@docs:a://b\nline", "docs a://b"],
    ["tab\t@docs:a://b", "docs a://b"],
    ["file=@docs:a://b", "docs a://b"],
    ["see:@docs:a://b", "docs a://b"],
    ["…@docs:a://b", "docs a://b"],
    ["比较@docs:a://b", "docs a://b"],
    ["これ@docs:a://b", "docs a://b"],
    ["me@docs:a.example", ""],
    ["first.last+x@docs:a.example", ""],
    ["é@docs:a://b", ""],
    ["𝒳@docs:a://b", ""],
    ["jose\u0301@docs:a://b", ""],
    ["https://host/@docs:a://b", ""],
    ["\\@docs:a://b", ""],
    ["@@docs:a://b", ""],
    ["C:\\@docs:a://b", ""],
    // Which server
    ["@unknown:file:///a.md", ""],
    ["@Docs:file:///a.md", ""],
    ["@docs", ""],
    ["@docs file:///a.md", ""],
    ["@doc:file:///a.md", ""],
    ["@docs-v2:a://b", "docs-v2 a://b"],
    ["@docs.old:a://b", "docs.old a://b"],
    ["@my.server:a://b", "my.server a://b"],
    ["@a-b:a://b", "a-b a://b"],
    ["@two words:a://b", "two words a://b"],
    ["@日本:a://b", "日本 a://b"],
    // Where the URI ends
    ["@docs:", ""],
    ["@docs: a", ""],
    ["@docs:a://b.", "docs a://b"],
    ["@docs:a://b, and", "docs a://b"],
    ["@docs:a://b; and", "docs a://b"],
    ["@docs:a://b!", "docs a://b"],
    ["@docs:a://b?!", "docs a://b"],
    ["@docs:a://b: yes", "docs a://b"],
    ["@docs:a://b…", "docs a://b"],
    ["@docs:a://b...", "docs a://b"],
    ["'@docs:a://b'", "docs a://b"],
    ["**@docs:a://b**", "docs a://b"],
    ["@docs:a://b。", "docs a://b"],
    ["看@docs:a://b，好", "docs a://b"],
    ["@docs:a://b?x=1&y=2", "docs a://b?x=1&y=2"],
    ["@docs:a://b#part", "docs a://b#part"],
    ["@docs:a://b,c", "docs a://b,c"],
    ["@docs:a://b,@docs:c", "docs a://b", "docs c"],
    ["@docs:a%20b", "docs a%20b"],
    ["@docs:...", ""],
    ["@docs:a://b's text", "docs a://b"],
    ["«@docs:a://b»", "docs a://b"],
    ["|@docs:a://b|", "docs a://b"],
    ["@docs:a://b\u200b", "docs a://b"],
    // Brackets
    ["(@docs:a://b)", "docs a://b"],
    ["(see @docs:a://b(1).md)", "docs a://b(1).md"],
    ["[@docs:a://b]", "docs a://b"],
    ["[text](@docs:a://b)", "docs a://b"],
    ["[@docs:a://b](x)", "docs a://b"],
    ["<@docs:a://b>", "docs a://b"],
    ["@docs:a://{id}/b", "docs a://{id}/b"],
    ["@docs:a://b(", "docs a://b"],
    ["@docs:a://b([)", "docs a://b"],
    ["@docs:a://b([)c", "docs a://b"],
    ["@docs:(", ""],
    ["{@docs:a://b[0]}", "docs a://b[0]"],
    // Quotes
    ['@docs:"file:///two words.md"', "docs file:///two words.md"],
    ["@docs:'file:///two words.md' now", "docs file:///two words.md"],
    ['@"docs:file:///two words.md"', "docs file:///two words.md"],
    ["@docs:“file:///two words.md”", "docs file:///two words.md"],
    ['@docs:"file:///open', ""],
    ['@docs:"a\nb"', ""],
    ['@docs:""', ""],
    ['@docs:" "', ""],
    ['"@docs:a://b"', "docs a://b"],
    // Paths
    ["@docs:C:\\dir\\a.md", "docs C:\\dir\\a.md"],
    ["@docs:file:///C:/dir/a.md.", "docs file:///C:/dir/a.md"],
    ["@docs:/etc/hosts", "docs /etc/hosts"],
    // Code
    ["`@docs:a://b`", ""],
    ["`@docs:a://b` @docs:c", "docs c"],
    ["``a ` @docs:a://b``", ""],
    ["a ` tick @docs:a://b", "docs a://b"],
    ["one ` tick\n\n@docs:a://b\n\nother ` tick", "docs a://b"],
    ["```\n@docs:a://b\n```", ""],
    ["```ts\n@docs:a://b\n```\n@docs:c", "docs c"],
    ["~~~\n@docs:a://b\n```\n@docs:c\n~~~", ""],
    ["````\n```\n@docs:a://b\n````\n@docs:c", "docs c"],
    ["```\n@docs:a://b", ""],
    ["> ```\n> @docs:a://b\n> ```", ""],
    ["```\r\n@docs:a://b\r\n\r\n@docs:c\r\n```\r\n@docs:d", "docs d"],
    ["1. ```\n   x\n\n   @docs:a://b\n   ```", ""],
    ["```not` a fence @docs:a://b", "docs a://b"],
  ])("reads %j", (text, ...expected) => {
    expect(uris(text)).toEqual(expected.filter((uri) => uri !== ""));
  });

  it("says where each mention stands", () => {
    const text = 'read @docs:"a b" (and @tracker:issue://42).';
    expect(parseMentions(text, SERVERS).map(({ start, end }) => text.slice(start, end))).toEqual([
      '@docs:"a b"',
      "@tracker:issue://42",
    ]);
  });

  it("takes the longest name that fits", () => {
    expect(parseMentions("@a:b:c", ["a", "a:b"])).toEqual([
      { serverName: "a:b", uri: "c", start: 0, end: 6 },
    ]);
    expect(parseMentions("@a:b:c", ["a"])).toEqual([
      { serverName: "a", uri: "b:c", start: 0, end: 6 },
    ]);
  });

  it("finds no mention without servers, and none with an empty name", () => {
    expect(parseMentions("@docs:a @:b", [])).toEqual([]);
    expect(parseMentions("@:b", [""])).toEqual([]);
  });

  it("ignores a URI that is too long, and continues after it", () => {
    const long = "x".repeat(MAX_URI_CHARS);
    expect(uris(`@docs:${long}`)).toEqual([`docs ${long}`]);
    expect(uris(`@docs:${long}y @docs:b`)).toEqual(["docs b"]);
    expect(uris(`@docs:"${long}y" @docs:b`)).toEqual(["docs b"]);
  });

  it("never throws and never reaches outside of the text", () => {
    const piece = fc.oneof(
      fc.constantFrom(
        ...SERVERS,
        "@",
        ":",
        '"',
        "'",
        "`",
        "```",
        "\n",
        "\n\n",
        " ",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ".",
        ",@",
        "\\",
        "://",
        "“",
        "”",
      ),
      fc.string({ unit: "binary", maxLength: 5 }),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 60 }), (pieces) => {
        const text = pieces.join("");
        let last = 0;
        for (const { serverName, uri, start, end } of parseMentions(text, SERVERS)) {
          expect(SERVERS).toContain(serverName);
          expect(uri).not.toBe("");
          expect(text[start]).toBe("@");
          expect(text.slice(start, end)).toContain(uri);
          expect(start).toBeGreaterThanOrEqual(last);
          expect(end).toBeLessThanOrEqual(text.length);
          last = end;
        }
        for (const { start, end } of codeRanges(text))
          expect(text.slice(start, end)).toMatch(/[`~]/);
      }),
      { numRuns: 2_000 },
    );
  });

  it("reads each part of a text only a few times, whatever the text is", () => {
    // Counted, not timed: what stands in for the text says how often it is read.
    const cost = (piece: string, times: number): number => {
      let steps = 0;
      const text = piece.repeat(times);
      const counted = new Proxy(new String(text), {
        get: (target, key) => {
          const value: unknown = Reflect.get(target, key, target);
          if (typeof key === "string" && /^\d+$/.test(key)) steps += 1;
          if (typeof value !== "function") return value;
          return (...args: unknown[]) => {
            const result: unknown = (value as (...given: unknown[]) => unknown).apply(text, args);
            steps +=
              key === "indexOf"
                ? (typeof result === "number" && result >= 0 ? result : text.length) -
                  Number(args[1] ?? 0)
                : 1;
            return result;
          };
        },
      });
      parseMentions(counted as unknown as string, SERVERS);
      return steps;
    };
    for (const piece of [
      "@docs:a ",
      '@docs:"',
      "@docs:(",
      "@",
      "@docs:'\n",
      '@"docs:',
      "@docs:,",
      "(@docs:x",
    ]) {
      const [small, large] = [cost(piece, 1_000), cost(piece, 4_000)];
      expect(`${piece} ${large <= 5 * small + 1_000 ? "linear" : `${small} → ${large}`}`).toBe(
        `${piece} linear`,
      );
    }
  });
});
