// A user's session: from the lightbulb to the kernel, its figures and its report; then an edit that changes the maths, and a new
// kernel for a file that the user has edited.

import assert from "node:assert/strict";
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import type { Camera } from "./camera";
import { assertSteady, watch } from "./watching";
import { assertQuiet, goToEndOf, lensLink, word } from "./window";

const TITLE = "Generate Triton kernel for RMSNorm";
const FORWARD_LINE = 14;
const LAST_FACTOR = "* self.weight";
/** Milliseconds that a job, and what VS Code shows, may take where other programs keep the processor busy. */
export const JOB = 400_000;
const LOOK = 60_000;
const MINE = "\n# A line of the user's.\n";

/** `showButtons`: has VS Code show those of editors, which a tidy window does without. */
export async function flow(page: Page, folder: string, camera: Camera, showButtons: () => void): Promise<void> {
  await generate(page, folder, camera);
  await look(page, camera);
  await report(page, camera);
  await change(page, folder, camera);
  await changeBack(page);
  await review(page, folder, camera, showButtons);
  await assertQuiet(page);
}

async function generate(page: Page, folder: string, camera: Camera): Promise<void> {
  await lensLink(page, /^Generate Triton kernel/).waitFor({ timeout: JOB });
  const action = await openLightbulb(page);
  await camera.take("lightbulb");
  const watched = await watch(page, "RMSNorm");
  await action.click();
  await lensLink(page, /^… (generating|validating|compiling)/).waitFor({ timeout: JOB });
  await camera.take("generating");
  await lensLink(page, /^✓/).waitFor({ timeout: JOB });
  const seen = await watched();
  assertSteady(seen);
  console.log(`  lens: ${seen.lenses.join(" → ")}`);
  const progress = seen.looks.find(({ status }) => status.includes("Generating Triton kernel for RMSNorm"));
  assert.ok(progress, "the status bar showed no progress");
  assert.ok(existsSync(join(folder, "kernels", "rms_norm_triton.py")));
}

/** The action that generates a kernel, in the menu of the light bulb. */
async function openLightbulb(page: Page): Promise<Locator> {
  await word(page, "RMSNorm").click();
  const bulb = page.locator(".lightBulbWidget, [class*='gutter-lightbulb']").first();
  await bulb.waitFor({ timeout: LOOK });
  await page.keyboard.press("Control+.");
  const action = page.locator(".action-widget .monaco-list-row", { hasText: TITLE });
  await action.waitFor({ timeout: LOOK });
  return action;
}

async function look(page: Page, camera: Camera): Promise<void> {
  await word(page, "RMSNorm").hover();
  const hover = page.locator(".monaco-hover:not(.hidden)", { hasText: "RMSNormTriton" }).first();
  await hover.waitFor({ timeout: LOOK });
  // Without a GPU there are no times, which is said instead.
  const times = hover.locator("table").or(hover.getByText("not measured"));
  await times.first().waitFor({ timeout: LOOK });
  await camera.take("hover");
  await page.keyboard.press("Escape");
  await page.mouse.move(900, 560);
  await hover.waitFor({ state: "hidden" });
}

async function report(page: Page, camera: Camera): Promise<void> {
  await lensLink(page, /^✓/).click();
  await page.locator(".tab", { hasText: "Report: RMSNorm" }).waitFor({ timeout: LOOK });
  const inner = page.frameLocator("iframe.webview").frameLocator("iframe");
  await inner.getByText("RMSNorm").first().waitFor({ timeout: LOOK });
  await camera.take("report");
  await page.locator(".tab", { hasText: "Report: RMSNorm" }).click({ button: "middle" });
  await page.locator(".tab", { hasText: "Report: RMSNorm" }).waitFor({ state: "detached" });
}

async function change(page: Page, folder: string, camera: Camera): Promise<void> {
  await word(page, "RMSNorm").click();
  await goToEndOf(page, FORWARD_LINE);
  for (const _ of LAST_FACTOR) await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("Delete");
  await page.keyboard.type("/");
  await lensLink(page, /stale/).waitFor({ timeout: LOOK });
  await camera.take("stale");
  const watched = await watch(page, "RMSNorm");
  await page.keyboard.press("Control+s");
  await lensLink(page, /^Kernel out of date · Regenerate$/).waitFor({ timeout: JOB });
  const seen = await watched();
  assertSteady(seen);
  console.log(`  lens: ${seen.lenses.join(" → ")}`);
  assert.match(readFileSync(join(folder, "rms_norm.py"), "utf8"), /\/ self\.weight/);
  await page.locator(".squiggly-warning").first().waitFor({ timeout: LOOK });
  await word(page, "RMSNorm").hover();
  await page.locator(".monaco-hover:not(.hidden)", { hasText: "out of date" }).first().waitFor({ timeout: LOOK });
  await camera.take("outdated");
  await page.keyboard.press("Escape");
  await page.mouse.move(900, 560);
}

async function changeBack(page: Page): Promise<void> {
  await goToEndOf(page, FORWARD_LINE);
  for (const _ of LAST_FACTOR) await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("Delete");
  await page.keyboard.type("*");
  await page.keyboard.press("Control+s");
  await lensLink(page, /^✓/).waitFor({ timeout: JOB });
  await page.locator(".squiggly-warning").first().waitFor({ state: "detached" });
}

/** A new kernel for a file that the user has edited: offered above the class, and compared. */
async function review(page: Page, folder: string, camera: Camera, showButtons: () => void): Promise<void> {
  const kernel = join(folder, "kernels", "rms_norm_triton.py");
  appendFileSync(kernel, MINE);
  await (await openLightbulb(page)).click();
  await lensLink(page, /^New kernel: Replace$/).waitFor({ timeout: JOB });
  assert.equal(await page.locator(".tab").count(), 1, "something opened by itself");
  showButtons();
  await goToEndOf(page, FORWARD_LINE);
  await lensLink(page, /^Compare$/).click();
  const tab = page.locator(".tab.active", { hasText: "now ↔ new" });
  await tab.waitFor({ timeout: LOOK });
  const lines = page.locator(".monaco-diff-editor .view-line");
  await lines.filter({ hasText: "kernel-lsp\u00a0…" }).first().waitFor({ timeout: LOOK });
  assert.equal(await lines.filter({ hasText: "fingerprint" }).count(), 0, "the header is shown");
  await camera.take("review"); // what its buttons do is tested in test/host/reviewing.ts
}
