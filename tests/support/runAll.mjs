// `npm test`: lint, types, snippets, build, unit, integration, examples, package check. One closing
// line with the sum.
import { spawn } from "node:child_process";

const jest = (...projects) => [
  "node",
  [
    "--experimental-vm-modules",
    "--no-warnings",
    "node_modules/jest/bin/jest.js",
    "--selectProjects",
    ...projects,
  ],
];
const steps = [
  ["lint", "npx", ["eslint", "."]],
  ["format", "npx", ["prettier", "--check", "."]],
  ["types", "npx", ["tsc", "--noEmit", "-p", "."]],
  ["snippets", "node", ["tests/support/checkSnippets.mjs"]],
  ["build", "npx", ["tsup", "--silent"]],
  ["unit", ...jest("unit")],
  ["integration", ...jest("integration")],
  ["examples", ...jest("examples")],
  ["package", "node", ["tests/package/check.mjs", ...(process.env.CI ? ["--lowest"] : [])]],
];

let passed = 0;
let failed = 0;
for (const [name, command, args] of steps) {
  console.log(`\n=== ${name} ===`);
  const { code, output } = await run(command, args);
  // Steps that count say so in a line of their own; the others count as one.
  const counts = [...output.matchAll(/^Tests: .*|^package: .*/gm)].map(([line]) => line);
  const sum = (what) =>
    counts.reduce(
      (total, line) => total + Number(new RegExp(`(\\d+) ${what}`).exec(line)?.[1] ?? 0),
      0,
    );
  passed += sum("passed") || (code === 0 ? 1 : 0);
  failed += sum("failed") || (code === 0 ? 0 : 1);
}
console.log(`\n${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;

function run(command, args) {
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, FORCE_COLOR: "0" },
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (chunk) => {
        output += chunk;
        process.stdout.write(chunk);
      });
    }
    child.on("close", (code) => resolve({ code, output }));
  });
}
