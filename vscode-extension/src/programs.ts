// Other programs: where they are, and running them.

import { type ChildProcess, execFile } from "node:child_process";
import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { homedir } from "node:os";
import { delimiter, isAbsolute, join } from "node:path";

const running = new Set<ChildProcess>();

/** The path of a program on PATH; undefined where there is none. A relative entry would mean whatever folder is open. */
export async function onPath(name: string): Promise<string | undefined> {
  const names = process.platform === "win32" ? [`${name}.exe`] : [name];
  for (const folder of (process.env.PATH ?? "").split(delimiter).filter(isAbsolute)) {
    for (const file of names) {
      const path = join(folder, file);
      if (await isExecutable(path)) return path;
    }
  }
  return undefined;
}

async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

/** A program that did not do what it was started for. `output` is what it printed last. */
export class ProgramFailed extends Error {
  constructor(
    readonly program: string,
    readonly output: string,
  ) {
    super(`${program} failed: ${output}`);
  }
}

/**
 * What a program printed. It is killed when the time is over; throws ProgramFailed.
 * It runs in the home folder: Python looks for modules where it is started, and that may be a folder nobody trusts.
 */
export function run(program: string, args: string[], seconds = 900): Promise<string> {
  const options = { timeout: seconds * 1000, maxBuffer: 16 << 20, cwd: homedir() };
  return new Promise((resolve, reject) => {
    const child = execFile(program, args, options, (error, stdout, stderr) => {
      running.delete(child);
      if (error === null) resolve(stdout);
      else reject(new ProgramFailed(program, stderr.trim() || stdout.trim() || error.message));
    });
    running.add(child);
  });
}

/** When the window closes: an installation that went on would meet the next window's. */
export function killAll(): void {
  for (const child of running) child.kill("SIGKILL");
}
