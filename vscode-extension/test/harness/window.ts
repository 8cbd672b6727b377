// What the tests of test/host ask of the window, where extensions have no say: its messages, their buttons, its lists. A test
// writes a question as a file into a folder, and finds the answer beside it (test/host/window.ts).

import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import { pause } from "./processes";

export type Question =
  /** The buttons of the message that has this text. */
  | { ask: "buttons"; message: string }
  | { ask: "press"; message: string; button: string }
  /** A press on an entry of the list that VS Code shows at the top. */
  | { ask: "pick"; entry: string }
  /** A part of the window, by a CSS selector, that has this text. */
  | { ask: "part"; selector: string; text: string };

export interface Answer {
  found?: string[];
  error?: string;
}

const MILLISECONDS = 400_000; // until what is asked for is there: a message may be about a job

/** Answers the questions in a folder until `stop`. */
export function answerQuestions(page: Page, folder: string): { stop: () => void } {
  mkdirSync(folder, { recursive: true });
  let over = false;
  const answering = async (): Promise<void> => {
    while (!over) {
      for (const name of readdirSync(folder).filter((name) => name.endsWith(".question"))) {
        const path = join(folder, name.replace(".question", ".answer"));
        if (existsSync(path)) continue;
        const question = JSON.parse(readFileSync(join(folder, name), "utf8")) as Question;
        const answer = await answerTo(page, question).catch(async (error: unknown): Promise<Answer> => {
          await page.screenshot({ path: join(folder, name.replace(".question", ".png")) }); // to look at with KEEP=1
          return { error: String(error) };
        });
        if (over) return; // its folder may be gone
        writeFileSync(`${path}.part`, JSON.stringify(answer));
        renameSync(`${path}.part`, path);
      }
      await pause(50);
    }
  };
  void answering();
  return {
    stop: () => {
      over = true;
    },
  };
}

async function answerTo(page: Page, question: Question): Promise<Answer> {
  switch (question.ask) {
    case "buttons": {
      const shown = message(page, question.message);
      await shown.waitFor({ timeout: MILLISECONDS });
      return { found: await buttons(shown).allInnerTexts() };
    }
    case "press":
      await buttons(message(page, question.message)).getByText(question.button, { exact: true }).click({ timeout: MILLISECONDS });
      return {};
    case "pick":
      await page.locator(".quick-input-list .monaco-list-row", { hasText: question.entry }).first().click({ timeout: MILLISECONDS });
      return {};
    case "part":
      await page.locator(question.selector, { hasText: question.text }).first().waitFor({ timeout: MILLISECONDS });
      return {};
  }
}

/** The latest message with a text in it, in the list of messages: with --enable-smoke-test-driver none pops up. */
function message(page: Page, text: string): Locator {
  return page.locator(".notifications-center .notification-list-item", { hasText: text }).first();
}

function buttons(shown: Locator): Locator {
  return shown.locator(".notification-list-item-buttons-container .monaco-button");
}
