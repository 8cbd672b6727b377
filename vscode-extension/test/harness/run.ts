// A run: a temporary folder, and whatever is started for it. All of it ends with the run, however that ends.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import type { Browser } from "playwright-core";
import { launch } from "./browser";
import { alive, ended, pause, signal } from "./processes";
import type { Settings } from "./settings";
import { type Contents, type Installation, install, type Server, start, writeSettings } from "./vscode";

const GRACE = 10_000; // milliseconds that the language server and its workers have to end by themselves

export class Run {
  readonly folder = mkdtempSync(join(tmpdir(), "kernel-lsp-vscode-"));
  readonly mark = basename(this.folder);
  readonly #browsers: Browser[] = [];
  readonly #servers: Server[] = [];
  #ending: Promise<void> | undefined;

  install(name: string, settings: Settings = {}, contents: Partial<Contents> = {}): Installation {
    return install(join(this.folder, name), this.mark, settings, { stubs: ["python"], extension: true, ...contents });
  }

  /** The user's settings, for the next start. */
  change(installation: Installation, settings: Settings): void {
    writeSettings(installation, settings);
  }

  async start(installation: Installation, environment: NodeJS.ProcessEnv = {}): Promise<Server> {
    const server = await start(installation, environment);
    this.#servers.push(server);
    return server;
  }

  async browser(): Promise<Browser> {
    const browser = await launch(this.mark);
    this.#browsers.push(browser);
    return browser;
  }

  /** Ends VS Code and the browser, and throws if anything else is alive a while later. The folder stays. */
  async endProcesses(): Promise<void> {
    for (const browser of this.#browsers.splice(0)) await browser.close().catch(() => undefined);
    for (const server of this.#servers.splice(0)) server.process.kill("SIGTERM");
    await pause(100);
    // What is VS Code's own. The language server has to notice by itself, as it would when VS Code crashes.
    for (const { pid, command } of alive(this.mark)) {
      if (/server-main|bootstrap-fork|chromium/.test(command)) signal(pid, "SIGTERM");
    }
    const left = await ended(this.mark, GRACE);
    if (left.length > 0) throw new Error(`left running:\n${left.map(({ pid, command }) => `  ${pid} ${command}`).join("\n")}`);
  }

  /** Once, however often it is asked for: an interrupted test asks, too, when its browser is gone. */
  end(): Promise<void> {
    this.#ending ??= this.#end();
    return this.#ending;
  }

  async #end(): Promise<void> {
    try {
      await this.endProcesses();
    } finally {
      if (process.env.KEEP === undefined) rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
      else console.log(`kept: ${this.folder}`);
    }
  }
}

/** Does something with a run and ends it, also when that fails or the user interrupts it. */
export async function withRun<T>(body: (run: Run) => Promise<T>): Promise<T> {
  const run = new Run();
  const interrupt = (name: NodeJS.Signals): void => {
    run.end().then(
      () => process.exit(name === "SIGINT" ? 130 : 143),
      (error: unknown) => {
        console.error(error);
        process.exit(1);
      },
    );
  };
  process.once("SIGINT", interrupt);
  process.once("SIGTERM", interrupt);
  try {
    return await body(run);
  } finally {
    await run.end();
    process.off("SIGINT", interrupt);
    process.off("SIGTERM", interrupt);
  }
}
