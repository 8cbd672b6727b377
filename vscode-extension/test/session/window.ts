// VS Code's window as a user has it before them: opening it, and where things are on it.

import assert from "node:assert/strict";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import type { Run } from "../harness/run";
import type { Settings } from "../harness/settings";
import type { Server } from "../harness/vscode";

/** A tidy window: the editor, and what this extension shows. */
export const TIDY: Settings = {
  "workbench.colorTheme": "Default Dark Modern",
  "workbench.activityBar.location": "hidden",
  "workbench.layoutControl.enabled": false,
  "workbench.editor.editorActionsLocation": "hidden",
  "window.commandCenter": false,
  "window.menuBarVisibility": "hidden",
  "breadcrumbs.enabled": false,
  "editor.minimap.enabled": false,
  "editor.fontSize": 14,
  "editor.lineHeight": 22,
  "editor.scrollBeyondLastLine": false,
  "editor.stickyScroll.enabled": false,
  "editor.occurrencesHighlight": "off",
  "editor.guides.indentation": false,
  "explorer.openEditors.visible": 0,
};

export async function openFile(run: Run, server: Server, folder: string, name: string): Promise<Page> {
  const browser = await run.browser();
  const context = await browser.newContext({ viewport: { width: 1180, height: 640 }, deviceScaleFactor: 1.5 });
  const page = await context.newPage();
  const remote = server.url.replace("http:", "vscode-remote:");
  const payload = encodeURIComponent(JSON.stringify([["openFile", `${remote}${join(folder, name)}`]]));
  await page.goto(`${server.url}/?folder=${folder}&payload=${payload}`);
  await page.waitForSelector(".monaco-editor .view-line", { timeout: 180_000 });
  await page.keyboard.press("Control+b"); // the side bar, which is open in a new window
  return page;
}

/** The lens above the first class: its texts, in order. */
export async function lens(page: Page): Promise<string[]> {
  return await page.locator(".codelens-decoration").first().locator("a, span:not(.codicon)").allInnerTexts();
}

/** The link of a lens whose text matches. */
export function lensLink(page: Page, text: RegExp): Locator {
  return page.locator(".codelens-decoration a", { hasText: text }).first();
}

/** A name in the code, as shown. */
export function word(page: Page, text: string): Locator {
  return page.locator(".view-line span:not(:has(*))", { hasText: new RegExp(`^\\s*${text}\\s*$`) }).first();
}

/** Puts the cursor at the end of a line, counted from 1. */
export async function goToEndOf(page: Page, line: number): Promise<void> {
  await page.keyboard.press("Control+g");
  await page.waitForSelector(".quick-input-widget:visible");
  await page.keyboard.type(String(line));
  await page.keyboard.press("Enter");
  await page.waitForSelector(".quick-input-widget", { state: "hidden" });
  await page.keyboard.press("End");
}

/** What VS Code has put up over the window: there is to be nothing. */
export async function assertQuiet(page: Page): Promise<void> {
  assert.deepEqual(await page.locator(".notification-toast").allInnerTexts(), []);
  assert.equal(await page.locator(".monaco-dialog-box").count(), 0);
}
