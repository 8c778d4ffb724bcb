// Packs the package and uses the tarball as a user would: ESM, CommonJS, TypeScript, `./core`
// without langchain, publint, attw; with `--lowest` also the lowest versions of the peer ranges.
// Closes with `N passed, N failed`.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));
const work = mkdtempSync(join(tmpdir(), "mcp-package-"));
const { dependencies, peerDependencies } = JSON.parse(
  readFileSync(join(root, "package.json"), "utf8"),
);
const run = (command, args, cwd = root) =>
  execFileSync(command, args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
let passed = 0;
let failed = 0;
function check(name, task) {
  try {
    task();
    passed += 1;
    console.log(`ok ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED ${name}\n${error.stdout ?? ""}${error.stderr ?? error.stack}`);
  }
}

const tarball = join(
  work,
  run("npm", ["pack", "--silent", "--pack-destination", work]).trim().split("\n").at(-1),
);

/** A folder with the packed package and links to those of our installed packages that it names. */
function consumer(name, packages) {
  const folder = join(work, name);
  const own = join(folder, "node_modules", "langchain-mcp-middleware");
  mkdirSync(own, { recursive: true });
  run("tar", ["-xzf", tarball, "-C", own, "--strip-components", "1"]);
  for (const each of new Set([...Object.keys(dependencies), ...packages])) {
    const link = join(folder, "node_modules", each);
    mkdirSync(join(link, ".."), { recursive: true });
    symlinkSync(join(root, "node_modules", each), link);
  }
  writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  return folder;
}

const base = [
  "@langchain/core",
  "@langchain/langgraph",
  "@modelcontextprotocol/sdk",
  "@langchain/mcp-adapters",
  "zod",
];
const whole = consumer("whole", [...base, "langchain", "typescript", "@types/node"]);
const bare = consumer(
  "bare",
  base.filter((name) => name !== "@langchain/mcp-adapters"),
);
const use = (from) =>
  `const hub = ${from}.McpHub.fromServers({ s: { command: "node" } }); if (hub.status()[0].state !== "idle") throw new Error("state");`;

check("the tarball holds dist and nothing of the sources", () => {
  const files = run("tar", ["-tzf", tarball]).split("\n");
  if (files.some((file) => /\/(src|tests|bench|examples)\//.test(file)))
    throw new Error(files.join("\n"));
  for (const needed of [
    "package/dist/index.js",
    "package/dist/index.cjs",
    "package/dist/index.d.ts",
    "package/dist/index.d.cts",
    "package/dist/core.js",
    "package/dist/graph.js",
    "package/dist/chain.cjs",
    "package/LICENSE",
    "package/README.md",
  ]) {
    if (!files.includes(needed)) throw new Error(`${needed} is missing`);
  }
});
check("imports as ESM, with one class of each for both entry points", () => {
  writeFileSync(
    join(whole, "esm.mjs"),
    `import * as all from "langchain-mcp-middleware"; import * as core from "langchain-mcp-middleware/core"; ${use("all")}
     if (all.McpHub !== core.McpHub || typeof all.mcpMiddleware(hub).wrapModelCall !== "function") throw new Error("two classes");`,
  );
  run(process.execPath, ["esm.mjs"], whole);
});
check("requires as CommonJS, with one class of each for both entry points", () => {
  writeFileSync(
    join(whole, "cjs.cjs"),
    `const all = require("langchain-mcp-middleware"); const core = require("langchain-mcp-middleware/core"); ${use("all")}
     if (all.McpHub !== core.McpHub || typeof all.mcpMiddleware(hub).wrapModelCall !== "function") throw new Error("two classes");`,
  );
  run(process.execPath, ["cjs.cjs"], whole);
});
check("an error of the ESM build is recognised by the CommonJS build", () => {
  writeFileSync(
    join(whole, "both.mjs"),
    `import { createRequire } from "node:module"; import { McpConfigError } from "langchain-mcp-middleware/core";
     const other = createRequire(import.meta.url)("langchain-mcp-middleware/core");
     if (!other.McpConfigError.isInstance(new McpConfigError("x"))) throw new Error("not recognised");`,
  );
  run(process.execPath, ["both.mjs"], whole);
});
for (const [kind, file, module] of [
  ["ESM", "use.mts", "NodeNext"],
  ["CommonJS", "use.cts", "NodeNext"],
  ["a bundler", "bundled.ts", "Preserve"],
]) {
  check(`compiles from TypeScript (${kind})`, () => {
    writeFileSync(
      join(whole, file),
      `import { McpHub, mcpMiddleware, type McpHubOptions } from "langchain-mcp-middleware"; import { McpConfigError } from "langchain-mcp-middleware/core";
       const options: McpHubOptions = { mcpServers: { s: { command: "node" } } }; export const middleware = mcpMiddleware(new McpHub(options)); export const error: Error = new McpConfigError("x");`,
    );
    run(
      process.execPath,
      [
        join(root, "node_modules/typescript/bin/tsc"),
        "--noEmit",
        "--strict",
        "--skipLibCheck",
        "--target",
        "es2022",
        "--lib",
        "es2023,esnext.disposable",
        "--types",
        "node",
        "--module",
        module,
        "--moduleResolution",
        module === "NodeNext" ? "NodeNext" : "Bundler",
        file,
      ],
      whole,
    );
  });
}
check("./graph, ./chain and ./testing work without langchain, and are of the same classes", () => {
  const program = (load) => `${load("core")} ${load("graph")} ${load("chain")} ${load("testing")}
    const hub = new core.McpHub({ mcpServers: { s: { command: "none" } } });
    if (graph.McpHub !== core.McpHub || chain.McpHub !== core.McpHub || testing.McpHub !== core.McpHub) throw new Error("two classes");
    if (typeof graph.createMcpNodes(hub).input !== "function") throw new Error("no nodes");
    if (typeof chain.createMcpSession(hub).loop !== "function") throw new Error("no session");
    if (testing.createMcpTestHub({ mcpServers: { s: { recording: { tools: [] } } } }).calls.length !== 0) throw new Error("calls");`;
  writeFileSync(
    join(bare, "faces.mjs"),
    program((name) => `import * as ${name} from "langchain-mcp-middleware/${name}";`),
  );
  writeFileSync(
    join(bare, "faces.cjs"),
    program((name) => `const ${name} = require("langchain-mcp-middleware/${name}");`),
  );
  run(process.execPath, ["faces.mjs"], bare);
  run(process.execPath, ["faces.cjs"], bare);
});

check("./core works without langchain and without the adapter, as ESM and CommonJS", () => {
  writeFileSync(
    join(bare, "core.mjs"),
    `import * as core from "langchain-mcp-middleware/core"; ${use("core")}`,
  );
  writeFileSync(
    join(bare, "core.cjs"),
    `const core = require("langchain-mcp-middleware/core"); ${use("core")}`,
  );
  run(process.execPath, ["core.mjs"], bare);
  run(process.execPath, ["core.cjs"], bare);
});
check("publint", () => run("npx", ["publint", "--strict", tarball]));
check("attw", () => run("npx", ["attw", tarball, "--format", "ascii"]));
if (process.argv.includes("--lowest")) {
  check("works with the lowest versions of the peer ranges", () => {
    const folder = join(work, "lowest");
    mkdirSync(folder);
    writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }));
    const lowest = Object.entries(peerDependencies).map(
      ([name, range]) => `${name}@${range.replace("^", "")}`,
    );
    run(
      "npm",
      [
        "install",
        "--silent",
        "--ignore-scripts",
        "--strict-peer-deps",
        "--save-exact",
        tarball,
        ...lowest,
        "zod@4",
        "@modelcontextprotocol/server-everything",
      ],
      folder,
    );
    writeFileSync(join(folder, "smoke.mjs"), readFileSync(join(root, "tests/package/smoke.mjs")));
    run(process.execPath, ["smoke.mjs"], folder);
  });
}
rmSync(work, { recursive: true, force: true });
console.log(`package: ${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
