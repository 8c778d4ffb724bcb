import { inspect } from "node:util";

import { maskSecrets } from "../../../src/config/variables.js";
import { withLimitedBody } from "../../../src/connect/http/limitedBody.js";
import { maskValue } from "../../../src/connect/maskValue.js";
import {
  argumentSecrets,
  secretsOf,
  isSecretName,
  literalSecrets,
  looksLikeCredential,
} from "../../../src/connect/secrets.js";
import type { TransportSettings } from "../../../src/config/transport.js";

const KEY = "sk-live-12345678";
const web = (url: string, headers: Record<string, string> = {}): TransportSettings => ({
  kind: "http",
  url,
  headers,
  authProvider: undefined,
  sseFallback: true,
});

describe("names of secrets", () => {
  it.each([
    "API_KEY",
    "x-api-key",
    "accessToken",
    "AUTH",
    "Authorization",
    "DB_PASSWORD",
    "cookie",
    "GITHUB_PAT",
    "client_secret",
    "apikey",
  ])("%s is one", (name) => expect(isSecretName(name)).toBe(true));
  it.each([
    "AUTHOR",
    "KEYBOARD",
    "PATH",
    "HOME",
    "compass",
    "X-Region",
    "Accept",
    "MONKEY_BUSINESS",
    "MONKEY",
    "TOKEN_DIR",
    "SSH_KEY_PATH",
    "AUTH_URL",
    "COOKIE_DOMAIN",
    "PRIMARY_KEY_COLUMN",
    "passage",
  ])("%s is none", (name) => expect(isSecretName(name)).toBe(false));
});

describe("secrets of a configuration", () => {
  it.each<[string, string[], string]>([
    ["--api-key x", ["--api-key", KEY], KEY],
    ["a URL with a token for a user", [`https://${KEY}@github.com/x`], KEY],
    ["--api-key=x", [`--api-key=${KEY}`], KEY],
    ["API_KEY=x", [`API_KEY=${KEY}`], KEY],
    ["--header Authorization: Bearer x", ["--header", `Authorization: Bearer ${KEY}`], KEY],
    ["a URL with a password", [`https://user:${KEY}@h/x`], KEY],
    ["a URL with a token", [`https://h/x?token=${KEY}&a=b`], KEY],
  ])("are found in arguments: %s", (_what, args, secret) =>
    expect(argumentSecrets(args)).toContain(secret),
  );

  it("do not include other arguments", () => {
    expect(
      argumentSecrets([
        "--verbose",
        "--out",
        "file.json",
        "-c",
        "curl evil | sh",
        "--author=me",
        "https://h/x?page=2",
      ]),
    ).toEqual([]);
  });

  it.each([
    ["ab+cd/ef+gh==", "Cannot POST /mcp?api_key=ab+cd/ef+gh=="],
    ["my%20pass%25word%2F1", "GET /mcp?api_key=my%20pass%25word%2F1 my pass%word/1"],
  ])("are known as they are written in a query: %s", (written, text) => {
    const secrets = literalSecrets(web(`https://h/mcp?api_key=${written}`));
    const masked = maskSecrets(text, secrets);
    expect(masked).not.toContain(written);
    expect(masked).not.toContain(decodeURIComponent(written));
  });

  it("include their spellings in JSON, in URLs and inside Basic", () => {
    const pem = "-----BEGIN KEY-----\nabc123/+=\n-----END KEY-----";
    const secrets = literalSecrets({
      kind: "stdio",
      command: "x",
      args: [],
      env: { PRIVATE_KEY: pem },
      inheritEnv: [],
      cwd: undefined,
      copyStderr: false,
    });
    for (const text of [pem, JSON.stringify({ k: pem }), `?k=${encodeURIComponent(pem)}`]) {
      expect(maskSecrets(text, secrets)).not.toContain("abc123");
    }
    const basic = Buffer.from(`me:${KEY}`).toString("base64");
    expect(literalSecrets(web("https://h", { Authorization: `Basic ${basic}` }))).toContain(KEY);
  });

  it("are credentials only if they look like one: plain words stay in results", () => {
    const words = [
      "password",
      "development",
      "8080",
      "/home/me/project1",
      "C:\\Users\\me1",
      "https://login1.example.com",
      "db1.example.com",
    ];
    expect(words.filter(looksLikeCredential)).toEqual([]);
    expect(
      secretsOf(
        web("https://h", { "X-Auth-Type": "password", "X-Api-Key": KEY }),
        [],
        [["HOME", "/home/me12345678"]],
      ).credentials,
    ).toEqual([KEY]);
  });
});

describe("maskValue", () => {
  const mask = (text: string): string => text.replaceAll(KEY, "***");

  it("keeps class, name, message and data of errors, and does not fail on what it cannot copy", () => {
    class Odd extends Error {
      readonly data = { key: KEY };
      override readonly cause = new TypeError(`fetch failed ${KEY}`);
    }
    const odd = maskValue(new Odd(`no ${KEY}`), mask) as Odd;
    expect(odd).toBeInstanceOf(Odd);
    expect(odd.message).toBe("no ***");
    expect(odd.data).toEqual({ key: "***" });
    expect(odd.cause).toBeInstanceOf(TypeError);
    const timeout = maskValue(new DOMException(`late ${KEY}`, "TimeoutError"), mask) as Error;
    expect([timeout.name, timeout.message, String(timeout)]).toEqual([
      "TimeoutError",
      "late ***",
      "TimeoutError: late ***",
    ]);
    expect(inspect(odd) + inspect(timeout)).not.toContain(KEY);
  });

  it("leaves data unchanged: numbers, null, arrays, keys, __proto__", () => {
    const data = JSON.parse(
      `{"a":[1,null,"${KEY}",[{"b":true}]],"__proto__":{"c":"${KEY}"},"${KEY}":1}`,
    ) as object;
    const copy = maskValue(data, mask) as Record<string, unknown>;
    expect(JSON.stringify(copy)).toBe(
      `{"a":[1,null,"***",[{"b":true}]],"__proto__":{"c":"***"},"${KEY}":1}`,
    );
    expect(Object.getPrototypeOf(copy)).toBe(Object.prototype);
  });

  it("ends for values that refer to themselves in many ways", () => {
    const a: Record<string, unknown> = {};
    const b: Record<string, unknown> = { error: a, text: KEY };
    Object.assign(a, { request: b, cause: b });
    const copy = maskValue(a, mask) as { request: { text: string; error: unknown } };
    expect(copy.request.text).toBe("***");
    expect(copy.request.error).toBe(copy);
  });
});

describe("a bounded body", () => {
  const responseOf = (chunks: readonly string[], type: string): Response => {
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        for (const chunk of chunks) controller.enqueue(Buffer.from(chunk));
        controller.close();
      },
    });
    return new Response(body, { headers: { "content-type": type } });
  };

  it("ends a JSON body, and an event, that is too large", async () => {
    const large = Array.from({ length: 20 }, () => "x".repeat(100));
    for (const type of ["application/json", "text/event-stream"]) {
      await expect(withLimitedBody(responseOf(large, type), 1_000).text()).rejects.toThrow(
        "larger than",
      );
    }
  });

  it.each([["\n\n"], ["\r\n\r\n"], ["\r\r"]])(
    "passes an endless series of events, wherever they are cut: %j",
    async (end) => {
      const event = `data: ${"x".repeat(300)}${end}`;
      const text = event.repeat(50);
      for (const size of [1, 7, 151, 310]) {
        const chunks = Array.from({ length: Math.ceil(text.length / size) }, (_, index) =>
          text.slice(index * size, (index + 1) * size),
        );
        expect(await withLimitedBody(responseOf(chunks, "text/event-stream"), 1_000).text()).toBe(
          text,
        );
      }
    },
  );
});
