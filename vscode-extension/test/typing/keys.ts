// How long a typed character takes to be seen: from the key to the frame that shows it, measured in the page.

import type { Page } from "playwright-core";

interface Clock {
  times: number[];
}

/** Begins to measure every key that changes the text. */
export async function startClock(page: Page): Promise<void> {
  await page.evaluate(() => {
    const clock: Clock = { times: [] };
    Object.assign(window, { clock });
    let pressed: number | undefined;
    document.addEventListener("keydown", (event) => (pressed = event.timeStamp), { capture: true });
    const lines = document.querySelector(".monaco-editor .view-lines");
    if (lines === null) throw new Error("there is no editor");
    const { port1, port2 } = new MessageChannel();
    let since = 0;
    port1.onmessage = () => clock.times.push(performance.now() - since);
    new MutationObserver(() => {
      if (pressed === undefined) return;
      since = pressed;
      pressed = undefined;
      // The message comes after the frame that the change is drawn in.
      requestAnimationFrame(() => port2.postMessage(undefined));
    }).observe(lines, { childList: true, subtree: true, characterData: true });
  });
}

/** Types a text at a person's pace; the milliseconds of each character. */
export async function type(page: Page, text: string): Promise<number[]> {
  const seen = (): Promise<number> => page.evaluate(() => (window as unknown as { clock: Clock }).clock.times.length);
  const before = await seen();
  for (const [i, character] of [...text].entries()) {
    await page.keyboard.press(character === " " ? "Space" : character);
    await page.waitForTimeout(60 + ((i * 37) % 50));
  }
  for (let tries = 0; (await seen()) < before + text.length && tries < 40; tries += 1) await page.waitForTimeout(50);
  const times = await page.evaluate(() => (window as unknown as { clock: Clock }).clock.times);
  const measured = times.slice(before);
  if (measured.length !== text.length) throw new Error(`${measured.length} of ${text.length} characters were seen`);
  return measured;
}
