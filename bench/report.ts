import { writeFileSync } from "node:fs";

import Table from "cli-table3";

/** One row of `bench/results.json`. */
export interface Row {
  readonly name: string;
  readonly ours: number;
  /** The same for the peer in the same run; `null` where there is none. */
  readonly peer: number | null;
  readonly ratio: number | null;
  /** What is aimed at, in words. */
  readonly target: string;
  readonly unit: string;
  readonly ok: boolean;
  readonly note: string;
}

/** Prints the rows as a table and writes them to a file beside this one. */
export function report(rows: readonly Row[], file: string): void {
  const table = new Table({
    head: ["what", "ours", "peer", "ratio", "target", "ok"],
    style: { head: [], border: [] },
  });
  const show = (value: number | null): string =>
    value === null ? "–" : String(Number(value.toPrecision(4)));
  for (const { name, ours, peer, ratio, target, unit, ok } of rows) {
    table.push([
      name,
      `${show(ours)} ${unit}`,
      peer === null ? "–" : `${show(peer)} ${unit}`,
      show(ratio),
      target,
      ok ? "yes" : "NO",
    ]);
  }
  console.log(table.toString());
  for (const { name, note } of rows) if (note !== "") console.log(`${name}: ${note}`);
  writeFileSync(new URL(file, import.meta.url), `${JSON.stringify(rows, null, 2)}\n`);
}

/** A row with a ratio to the peer. */
export function ratioRow(
  name: string,
  ours: number,
  peer: number,
  unit: string,
  target: string,
  ok: (ratio: number) => boolean,
  note = "",
): Row {
  const ratio = ours / peer;
  return { name, ours, peer, ratio, target, unit, ok: ok(ratio), note };
}

/** A row that is measured against a limit alone. */
export function limitRow(
  name: string,
  ours: number,
  unit: string,
  target: string,
  isOk: boolean,
  note = "",
): Row {
  return { name, ours, peer: null, ratio: null, target, unit, ok: isOk, note };
}

/** The value below which a share of the values lie. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!;
}
