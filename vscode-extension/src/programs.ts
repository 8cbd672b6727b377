// Other programs: where they are, and running them.

import { execFile } from "node:child_process";
import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { delimiter, join } from "node:path";

/** The path of a program on PATH; undefined where there is none. */
export async function onPath(name: string): Promise<string | undefined> {
  const names = process.platform === "win32" ? [`${name}.exe`] : [name];
  for (const folder of (process.env["PATH"] ?? "").split(delimiter).filter(Boolean)) {
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

/** What a program printed. It is killed when the time is over; throws ProgramFailed. */
export function run(program: string, args: string[], seconds = 900): Promise<string> {
  const options = { timeout: seconds * 1000, maxBuffer: 16 << 20 };
  return new Promise((resolve, reject) => {
    execFile(program, args, options, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(new ProgramFailed(program, stderr.trim() || stdout.trim() || error.message));
    });
  });
}
