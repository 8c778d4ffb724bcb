// `npm run bench`: ratios in one run, printed as a table and written to bench/results.json.
// `npm run bench -- prompt calls` runs some of the rows and writes nothing.
import { report, type Row } from "./report.js";
import { callRows } from "./rows/calls.js";
import { closeRows, connectRows, hangingRows } from "./rows/connections.js";
import { fidelityRows } from "./rows/fidelity.js";
import { hooksRows } from "./rows/hooks.js";
import { hostileRows } from "./rows/hostile.js";
import { importRows } from "./rows/imports.js";
import { mentionRows } from "./rows/mentions.js";
import { promptRows } from "./rows/prompt.js";
import { strategyRows } from "./rows/strategies.js";

const groups: Readonly<Record<string, () => Promise<Row[]>>> = {
  prompt: promptRows,
  strategies: strategyRows,
  fidelity: fidelityRows,
  hooks: hooksRows,
  mentions: mentionRows,
  calls: callRows,
  imports: importRows,
  connect: connectRows,
  hanging: hangingRows,
  close: closeRows,
  hostile: hostileRows,
};

const wanted = process.argv.slice(2);
const rows: Row[] = [];
for (const [name, measure] of Object.entries(groups)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  console.error(`measuring ${name} …`);
  rows.push(...(await measure()));
}
report(rows, wanted.length === 0 ? "results.json" : "partial.json");
process.exitCode = rows.every(({ ok }) => ok) ? 0 : 1;
