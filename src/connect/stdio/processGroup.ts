import { readdir, readFile } from "node:fs/promises";
import type { ChildProcess } from "node:child_process";
import { spawn } from "node:child_process";

import { onExit } from "signal-exit";

export interface KillLadder {
  /** Milliseconds from SIGINT (and end of stdin) to SIGTERM. */
  readonly afterSigintMs: number;
  /** Milliseconds from SIGTERM to SIGKILL. */
  readonly afterSigtermMs: number;
}

export const DEFAULT_KILL_LADDER: KillLadder = { afterSigintMs: 100, afterSigtermMs: 600 };

const POLL_MS = 10;
const AFTER_SIGKILL_MS = 500;

/** Running process groups of this process, for the exit hook. */
const livingGroups = new Set<number>();
let removeExitHook: (() => void) | undefined;

/** Has a process group killed when this process exits without closing it. */
export function watchGroup(groupId: number): void {
  livingGroups.add(groupId);
  removeExitHook ??= onExit(() => {
    for (const living of livingGroups) signalGroup(living, "SIGKILL");
  });
}

/** Removes a process group from the exit hook. */
export function forgetGroup(groupId: number): void {
  livingGroups.delete(groupId);
  if (livingGroups.size > 0) return;
  removeExitHook?.();
  removeExitHook = undefined;
}

/**
 * Ends a child's process group by SIGINT, SIGTERM, then SIGKILL. Returns when none of its processes
 * runs.
 */
export async function endGroup(
  child: ChildProcess,
  ladder: KillLadder = DEFAULT_KILL_LADDER,
): Promise<void> {
  const { pid } = child;
  if (pid === undefined) return;
  if (process.platform === "win32") {
    await endTree(child, pid);
    return;
  }
  try {
    for (const [signal, waitMs] of [
      ["SIGINT", ladder.afterSigintMs],
      ["SIGTERM", ladder.afterSigtermMs],
      ["SIGKILL", AFTER_SIGKILL_MS],
    ] as const) {
      if (!(await isGroupAlive(pid))) return;
      signalGroup(pid, signal);
      if (await waitUntilGone(pid, waitMs)) return;
    }
  } finally {
    forgetGroup(pid);
  }
}

function signalGroup(groupId: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-groupId, signal);
  } catch {
    // Already ended.
  }
}

async function waitUntilGone(groupId: number, waitMs: number): Promise<boolean> {
  const end = performance.now() + waitMs;
  while (performance.now() < end) {
    if (!(await isGroupAlive(groupId))) return true;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  return !(await isGroupAlive(groupId));
}

/** True while a process of the group runs. Without `/proc` a zombie counts as running. */
export async function isGroupAlive(groupId: number): Promise<boolean> {
  try {
    process.kill(-groupId, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
  if (process.platform !== "linux") return true;
  const members = await statesOfGroup(groupId);
  return members === undefined || members.some((state) => state !== "Z" && state !== "X");
}

async function statesOfGroup(groupId: number): Promise<string[] | undefined> {
  let entries: string[];
  try {
    entries = await readdir("/proc");
  } catch {
    return undefined;
  }
  const states = await Promise.all(
    entries
      .filter((entry) => /^\d+$/.test(entry))
      .map(async (entry) => {
        try {
          const stat = await readFile(`/proc/${entry}/stat`, "utf8");
          // pid (command) state ppid pgrp …; the command may hold spaces and brackets.
          const [state, , group] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
          return Number(group) === groupId ? state : undefined;
        } catch {
          return undefined;
        }
      }),
  );
  return states.filter((state) => state !== undefined);
}

async function endTree(child: ChildProcess, pid: number): Promise<void> {
  try {
    if (child.exitCode !== null) return;
    await new Promise<void>((resolve) => {
      child.once("close", () => resolve());
      spawn("taskkill", ["/pid", String(pid), "/T", "/F"], { windowsHide: true }).once(
        "error",
        () => {
          child.kill("SIGKILL");
        },
      );
    });
  } finally {
    forgetGroup(pid);
  }
}
