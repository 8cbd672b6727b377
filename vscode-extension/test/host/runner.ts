// Runs tests one after the other and writes a line for each, to the file that the harness prints.

import { appendFileSync } from "node:fs";

export interface Test {
  name: string;
  body: () => Promise<void>;
}

const SECONDS = 900;

export function say(text: string): void {
  appendFileSync(process.env.TEST_OUTPUT ?? "/dev/stderr", `${text}\n`);
}

/** Throws when a test failed, after the last one: VS Code makes that the exit code. */
export async function runAll(suite: string, tests: Test[]): Promise<void> {
  const failed: string[] = [];
  const only = new RegExp(process.env.ONLY ?? ""); // to look at a few
  for (const { name, body } of tests.filter((test) => only.test(test.name))) {
    const began = Date.now();
    const error = await outcome(body);
    const seconds = ((Date.now() - began) / 1000).toFixed(1);
    say(`${error === undefined ? "✓" : "✗"} ${suite}: ${name} (${seconds} s)`);
    if (error === undefined) continue;
    failed.push(name);
    say(error.replace(/^/gm, "    "));
  }
  if (failed.length > 0) throw new Error(`failed: ${failed.join(", ")}`);
}

async function outcome(body: () => Promise<void>): Promise<string | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not ended after ${SECONDS} s`)), SECONDS * 1000);
  });
  try {
    await Promise.race([body(), late]);
    return undefined;
  } catch (error) {
    return error instanceof Error ? (error.stack ?? error.message) : String(error);
  } finally {
    clearTimeout(timer);
  }
}
