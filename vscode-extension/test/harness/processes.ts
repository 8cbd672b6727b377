// The processes of a run: each inherits a mark in its environment, by which it is found again however it was started.

import { readdirSync, readFileSync } from "node:fs";

const NAME = "KERNEL_LSP_TEST_RUN";

/** The environment that marks a process, and all that it starts. */
export function marked(mark: string, extra: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  return { ...process.env, ...extra, [NAME]: mark };
}

export interface Found {
  pid: number;
  command: string;
}

/** What of a run is alive, this process left out. */
export function alive(mark: string): Found[] {
  const found: Found[] = [];
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    const command = read(`/proc/${pid}/cmdline`).replaceAll("\0", " ").trim();
    if (command === "") continue; // a zombie, or one of the kernel's own
    // A sandboxed process may have an environment of its own; its arguments then name the run's folder.
    if (read(`/proc/${pid}/environ`).includes(`${NAME}=${mark}`) || command.includes(mark)) found.push({ pid, command });
  }
  return found;
}

/** Waits until nothing of a run is alive, for so long. What is left then is killed, and returned. */
export async function ended(mark: string, milliseconds: number): Promise<Found[]> {
  const until = Date.now() + milliseconds;
  while (alive(mark).length > 0 && Date.now() < until) await pause(50);
  const left = alive(mark);
  for (const { pid } of left) signal(pid, "SIGKILL");
  return left;
}

export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

export function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return ""; // it has ended meanwhile
  }
}
