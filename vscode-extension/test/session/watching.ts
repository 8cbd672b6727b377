// What the window shows over time, looked at every 50 ms: whether it flickers.

import assert from "node:assert/strict";
import type { Page } from "playwright-core";

interface Look {
  /** The lens line above the class, all of it. */
  lens: string;
  /** Where the class stands, in pixels from the top. */
  top: number;
  status: string;
  toasts: number;
}

export interface Watched {
  looks: Look[];
  /** The texts of the lens line, each as long as it stood. */
  lenses: string[];
}

const EVERY = 50; // milliseconds

/** Begins to watch a class; the result ends it. */
export async function watch(page: Page, className: string): Promise<() => Promise<Watched>> {
  await page.evaluate(
    ({ name, every }) => {
      const text = (selector: string): string =>
        [...document.querySelectorAll<HTMLElement>(selector)].map((element) => element.innerText).join(" | ");
      const looks: Look[] = [];
      const timer = setInterval(() => {
        const line = [...document.querySelectorAll(".view-line")].find((found) => found.textContent?.includes(name));
        looks.push({
          lens: text(".codelens-decoration").replace(/\s+/g, " ").trim(),
          top: line?.getBoundingClientRect().top ?? -1,
          status: text(".statusbar-item:not(.hidden)"),
          toasts: document.querySelectorAll(".notification-toast").length,
        });
      }, every);
      Object.assign(window, { watched: { timer, looks } });
    },
    { name: `class\u00a0${className}`, every: EVERY },
  );
  return async () => {
    const looks = await page.evaluate(() => {
      const { timer, looks } = (window as unknown as { watched: { timer: number; looks: Look[] } }).watched;
      clearInterval(timer);
      return looks;
    });
    const lenses = looks.map((look) => look.lens).filter((text, i, all) => text !== all[i - 1]);
    return { looks, lenses };
  };
}

/** The line never goes away once it is there, nothing below it moves, and no text comes back after another one. */
export function assertSteady({ looks, lenses }: Watched): void {
  assert.ok(looks.length > 10, `only ${looks.length} looks`);
  assert.ok(!lenses.includes(""), `the lens went away: ${lenses.join(" → ")}`);
  assert.equal(new Set(lenses).size, lenses.length, `the lens went back and forth: ${lenses.join(" → ")}`);
  const tops = new Set(looks.map(({ top }) => Math.round(top)));
  assert.equal(tops.size, 1, `the class moved: ${[...tops].join(", ")}`);
  assert.ok(
    looks.every(({ toasts }) => toasts === 0),
    "a notification popped up",
  );
}
