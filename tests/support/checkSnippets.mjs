// Compiles every ```ts block of README.md and docs/ against the sources.
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";

const root = new URL("../../", import.meta.url);
const folder = new URL("tests/.snippets/", root);
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
const pages = [
  "README.md",
  ...readdirSync(new URL("docs/", root), { recursive: true })
    .filter((file) => file.endsWith(".md"))
    .map((file) => `docs/${file}`),
];
let count = 0;
for (const page of pages) {
  for (const [, code] of readFileSync(new URL(page, root), "utf8").matchAll(
    /^```ts\n([\s\S]*?)^```/gm,
  )) {
    count += 1;
    writeFileSync(
      new URL(`${page.replaceAll(/[/.]/g, "_")}_${count}.ts`, folder),
      `${code}\nexport {};\n`,
    );
  }
}
writeFileSync(
  new URL("tsconfig.json", folder),
  JSON.stringify({
    extends: "../../tsconfig.json",
    compilerOptions: { noUnusedLocals: false, noUnusedParameters: false },
    include: ["*.ts"],
  }),
);
execFileSync(
  process.execPath,
  ["node_modules/typescript/bin/tsc", "--noEmit", "-p", "tests/.snippets"],
  {
    cwd: root,
    stdio: "inherit",
  },
);
rmSync(folder, { recursive: true, force: true });
console.log(`${count} snippets compile`);
