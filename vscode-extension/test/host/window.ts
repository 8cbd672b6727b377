// What is asked of the window around the editor: its messages and their buttons (test/harness/window.ts answers).

import assert from "node:assert/strict";
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";
import type { Answer, Question } from "../harness/window";
import { JOB, until } from "./editor";

/** The list of the settings' editor. */
export const SETTINGS = ".settings-editor .settings-tree-container";

const FOLDER = process.env.TEST_QUESTIONS ?? "";
let asked = 0;

async function ask(question: Question): Promise<string[]> {
  asked += 1;
  const path = join(FOLDER, `${asked}.question`);
  const answer = join(FOLDER, `${asked}.answer`);
  writeFileSync(`${path}.part`, JSON.stringify(question));
  renameSync(`${path}.part`, path);
  await until(`an answer to ${JSON.stringify(question)}`, () => existsSync(answer), JOB + 30);
  const { found = [], error } = JSON.parse(readFileSync(answer, "utf8")) as Answer;
  assert.equal(error, undefined);
  return found;
}

/** Presses a button of the message with a text in it, once that is there with exactly these buttons. */
export async function answer(message: string, buttons: string[], button: string): Promise<void> {
  // The list does not open while it is empty.
  const showing = setInterval(() => void vscode.commands.executeCommand("notifications.showList"), 500);
  assert.deepEqual(await ask({ ask: "buttons", message }).finally(() => clearInterval(showing)), buttons);
  await ask({ ask: "press", message, button });
}

/** Presses an entry of the list at the top. */
export async function pick(entry: string): Promise<void> {
  await ask({ ask: "pick", entry });
}

/** Waits until a part of the window, by a CSS selector, has a text in it. */
export async function shown(selector: string, text: string): Promise<void> {
  await ask({ ask: "part", selector, text });
}
