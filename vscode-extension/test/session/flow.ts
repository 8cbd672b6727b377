// A user's session: from the lightbulb to the kernel, its figures and its report; then an edit that changes the maths.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import type { Camera } from "./camera";
import { assertSteady, watch } from "./watching";
import { assertQuiet, goToEndOf, lensLink, word } from "./window";

const TITLE = "Generate Triton kernel for RMSNorm";
const FORWARD_LINE = 14;
const LAST_FACTOR = "* self.weight";

export async function flow(page: Page, folder: string, camera: Camera): Promise<void> {
  await generate(page, folder, camera);
  await look(page, camera);
  await report(page, camera);
  await change(page, folder, camera);
  await changeBack(page);
  await assertQuiet(page);
}

async function generate(page: Page, folder: string, camera: Camera): Promise<void> {
  await lensLink(page, /^Generate Triton kernel$/).waitFor({ timeout: 90_000 });
  await word(page, "RMSNorm").click();
  const bulb = page.locator(".lightBulbWidget, [class*='gutter-lightbulb']").first();
  await bulb.waitFor({ timeout: 20_000 });
  await page.keyboard.press("Control+.");
  const action = page.locator(".action-widget .monaco-list-row", { hasText: TITLE });
  await action.waitFor({ timeout: 20_000 });
  await camera.take("lightbulb");
  const watched = await watch(page, "RMSNorm");
  await action.click();
  await lensLink(page, /^… (generating|validating|compiling)/).waitFor({ timeout: 60_000 });
  await camera.take("generating");
  await lensLink(page, /^✓/).waitFor({ timeout: 120_000 });
  const seen = await watched();
  assertSteady(seen);
  console.log(`  lens: ${seen.lenses.join(" → ")}`);
  const progress = seen.looks.find(({ status }) => status.includes("Generating Triton kernel for RMSNorm"));
  assert.ok(progress, "the status bar showed no progress");
  assert.ok(existsSync(join(folder, "kernels", "rms_norm_triton.py")));
}

async function look(page: Page, camera: Camera): Promise<void> {
  await word(page, "RMSNorm").hover();
  const hover = page.locator(".monaco-hover:not(.hidden)", { hasText: "RMSNormTriton" }).first();
  await hover.waitFor({ timeout: 20_000 });
  // Without a GPU there are no times, which is said instead.
  const times = hover.locator("table").or(hover.getByText("not measured"));
  await times.first().waitFor({ timeout: 5_000 });
  await camera.take("hover");
  await page.keyboard.press("Escape");
  await page.mouse.move(900, 560);
  await hover.waitFor({ state: "hidden" });
}

async function report(page: Page, camera: Camera): Promise<void> {
  await lensLink(page, /^✓/).click();
  await page.locator(".tab", { hasText: "Report: RMSNorm" }).waitFor({ timeout: 20_000 });
  const inner = page.frameLocator("iframe.webview").frameLocator("iframe");
  await inner.getByText("RMSNorm").first().waitFor({ timeout: 20_000 });
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
  await lensLink(page, /stale/).waitFor({ timeout: 30_000 });
  await camera.take("stale");
  const watched = await watch(page, "RMSNorm");
  await page.keyboard.press("Control+s");
  await lensLink(page, /^✗ wrong$/).waitFor({ timeout: 60_000 });
  const seen = await watched();
  assertSteady(seen);
  console.log(`  lens: ${seen.lenses.join(" → ")}`);
  assert.match(readFileSync(join(folder, "rms_norm.py"), "utf8"), /\/ self\.weight/);
  await page.locator(".squiggly-error").first().waitFor({ timeout: 10_000 });
  await word(page, "RMSNorm").hover();
  await page.locator(".monaco-hover:not(.hidden)", { hasText: "not usable" }).first().waitFor({ timeout: 20_000 });
  await camera.take("wrong");
  await page.keyboard.press("Escape");
  await page.mouse.move(900, 560);
}

async function changeBack(page: Page): Promise<void> {
  await goToEndOf(page, FORWARD_LINE);
  for (const _ of LAST_FACTOR) await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("Delete");
  await page.keyboard.type("*");
  await page.keyboard.press("Control+s");
  await lensLink(page, /^✓/).waitFor({ timeout: 60_000 });
  await page.locator(".squiggly-error").first().waitFor({ state: "detached" });
}
