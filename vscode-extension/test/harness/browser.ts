// Debian's Chromium, without a window.

import { type Browser, chromium } from "playwright-core";
import { marked } from "./processes";

const FLAGS = [
  "--no-sandbox", // root may not run it otherwise, as in CI
  "--disable-gpu",
  "--disable-quic",
  "--disable-dev-shm-usage",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export async function launch(mark: string): Promise<Browser> {
  const environment = marked(mark) as Record<string, string>;
  return await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: FLAGS,
    env: environment,
    ...{ handleSIGINT: false, handleSIGTERM: false, handleSIGHUP: false }, // the run ends it; Playwright would end the run
  });
}
