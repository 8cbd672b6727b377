// A lock between windows, as a folder: making one either works or not.

import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

const PAUSE = 200; // milliseconds

/** Waits until the lock is ours; the result gives it back. One whose owner is gone is taken over. */
export async function waitForLock(path: string): Promise<() => Promise<void>> {
  for (;;) {
    try {
      await mkdir(path);
      break;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    if (await isAbandoned(path)) await rm(path, { recursive: true, force: true });
    else await new Promise((resolve) => setTimeout(resolve, PAUSE));
  }
  await writeFile(join(path, "pid"), String(process.pid));
  return () => rm(path, { recursive: true, force: true });
}

async function isAbandoned(path: string): Promise<boolean> {
  const read = (): Promise<number> => readFile(join(path, "pid"), "utf8").then(Number, () => 0);
  let pid = await read();
  if (pid === 0) {
    await new Promise((resolve) => setTimeout(resolve, PAUSE)); // it may be about to be written
    pid = await read();
  }
  if (pid === 0) return true;
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ESRCH";
  }
}
