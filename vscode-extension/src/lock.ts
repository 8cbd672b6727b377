// A lock between windows, as a folder: making one either works or not.

import { mkdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";

const PAUSE = 200; // milliseconds
const LONGEST = 20 * 60_000; // of an installation, milliseconds

/**
 * Waits until the lock is ours; the result gives it back. One whose owner is gone is taken over, and one that is older
 * than the longest installation: after a restart of the machine its owner's pid may be somebody else's.
 */
export async function waitForLock(path: string, waiting: () => void): Promise<() => Promise<void>> {
  for (let tries = 0; ; tries++) {
    try {
      await mkdir(path);
      break;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    if (tries === 0) waiting();
    if (await isAbandoned(path)) await rm(path, { recursive: true, force: true });
    else await sleep(PAUSE);
  }
  await writeFile(join(path, "owner"), JSON.stringify({ host: hostname(), pid: process.pid }));
  return () => rm(path, { recursive: true, force: true });
}

async function isAbandoned(path: string): Promise<boolean> {
  const age = await stat(path).then(
    ({ mtimeMs }) => Date.now() - mtimeMs,
    () => 0,
  );
  if (age > LONGEST) return true;
  const owner = await readOwner(path);
  if (owner === undefined) return age > 10 * PAUSE; // it may be about to be written
  if (owner.host !== hostname()) return false; // a home that machines share: only its age tells
  return owner.pid === process.pid || !isAlive(owner.pid);
}

async function readOwner(path: string): Promise<{ host: string; pid: number } | undefined> {
  try {
    return JSON.parse(await readFile(join(path, "owner"), "utf8"));
  } catch {
    return undefined;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
