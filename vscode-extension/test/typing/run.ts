// Typing with kernel-lsp, which validates a kernel all the time, and without it: turn by turn in two windows of the same
// browser, so that whatever else this machine does meets both.

import assert from "node:assert/strict";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { VSIX } from "../harness/paths";
import { pause } from "../harness/processes";
import type { Run } from "../harness/run";
import { createWorkspace } from "../harness/workspace";
import { lensLink, openFile, TIDY } from "../session/window";
import { startClock, type } from "./keys";

const TURNS = 14;
const WORDS = "a sentence of thirty characters"; // of comment: nothing is suggested in one
const FILE = "group_norm_silu.py"; // whose validation outlasts a turn under Triton's interpreter
const KERNEL = "group_norm_silu_triton.py";

interface Window {
  page: Page;
  folder: string;
  times: number[];
}

/** What was measured, in milliseconds and bytes, as JSON. */
export async function measureTyping(run: Run, output: string): Promise<number> {
  const without = await openWindow(run, "without");
  const withIt = await openWindow(run, "with");
  await warmUp(withIt);
  for (const window of [without, withIt]) {
    await window.page.bringToFront();
    await window.page.locator(".view-line").first().click();
    await window.page.keyboard.press("Control+End");
    await startClock(window.page);
  }
  for (let turn = 0; turn <= TURNS; turn += 1) {
    await typeOneLine(without, turn);
    await validating(withIt, true);
    await typeOneLine(withIt, turn);
    assert.ok(await isBusy(withIt), "no validation was running at the end of a turn");
    await validating(withIt, false);
  }
  const activation = Number(readFileSync(join(withIt.folder, "activation"), "utf8"));
  const found = { without: without.times, with: withIt.times, activation, bytes: statSync(VSIX).size };
  writeFileSync(output, JSON.stringify(found));
  return 0;
}

async function openWindow(run: Run, name: "with" | "without"): Promise<Window> {
  const folder = createWorkspace(join(run.folder, name), [FILE]);
  writeFileSync(join(folder, "validate"), "off");
  const contents = { stubs: ["python", "driver"], extension: name === "with" };
  const installation = run.install(`vscode-${name}`, TIDY, contents);
  const server = await run.start(installation);
  return { page: await openFile(run, server, folder, FILE), folder, times: [] };
}

/** The server's environment is made, and there is a kernel to validate. Then VS Code has done its first things, too. */
async function warmUp(window: Window): Promise<void> {
  const generate = lensLink(window.page, /^Generate Triton kernel/);
  await generate.waitFor({ timeout: 120_000 });
  await window.page.reload(); // activated again, with its server installed this time
  await generate.waitFor({ timeout: 60_000 });
  await validating(window, true);
  const kernel = join(window.folder, "kernels", KERNEL);
  for (let tries = 0; !existsSync(kernel) && tries < 1800; tries += 1) await pause(100);
  assert.ok(existsSync(kernel), "no kernel was generated");
  await validating(window, false);
  await pause(3000);
}

async function typeOneLine({ page, times }: Window, turn: number): Promise<void> {
  await page.bringToFront();
  await page.keyboard.press("Home");
  await page.keyboard.press("Shift+End");
  await page.keyboard.press("Delete");
  await page.keyboard.press("#");
  await pause(300);
  const measured = await type(page, WORDS);
  if (turn > 0) times.push(...measured); // the first turn warms up
}

async function validating(window: Window, on: boolean): Promise<void> {
  writeFileSync(join(window.folder, "validate"), on ? "on" : "off");
  await window.page.bringToFront();
  for (let tries = 0; (await isBusy(window)) !== on && tries < 400; tries += 1) await pause(50);
  assert.equal(await isBusy(window), on);
}

async function isBusy({ page }: Window): Promise<boolean> {
  // Between two validations the verdict shows for a moment.
  for (let tries = 0; tries < 5; tries += 1) {
    if ((await lensLink(page, /^…/).count()) > 0) return true;
    await pause(50);
  }
  return false;
}
