// The server's life: started, stopped, started again. One at a time, whatever asks for it.

import * as vscode from "vscode";
import { type LanguageClient, State } from "vscode-languageclient/node";
import { createClient } from "./client";
import { distrustServer } from "./environment";
import type { Logs } from "./logs";
import { crashed, didNotStart, notRunning, Problem } from "./problems";
import type { Progress } from "./progress";
import type { Failure, Proposal, Status } from "./protocol";
import { serverCommand, strategy } from "./server";

const PAUSED = "paused"; // key in the workspace's state
const START_SECONDS = 60; // until the server has answered for the first time

export interface SessionEvents {
  starting: () => void;
  running: () => void;
  failed: (problem: Problem) => void;
  status: (status: Status) => void;
  proposal: (proposal: Proposal) => void;
  failure: (failure: Failure) => void;
  showDocument: (uri: vscode.Uri) => Promise<boolean>;
  progress: Progress["report"];
}

export class Session {
  client: LanguageClient | undefined;
  problem: Problem | undefined;
  /** When the first server was about to be started: `performance.now()`. */
  firstStart: number | undefined;
  #queue: Promise<void> = Promise.resolve();
  #lastWords = ""; // of the server, on standard error

  constructor(
    readonly context: vscode.ExtensionContext,
    readonly logs: Logs,
    readonly events: SessionEvents,
  ) {}

  get paused(): boolean {
    return this.context.workspaceState.get(PAUSED, false);
  }

  /** Ends the server that runs, if one does, and starts a new one. Never throws: the status says what went wrong. */
  restart(): Promise<void> {
    this.#queue = this.#queue.then(() => this.#restart());
    return this.#queue;
  }

  stop(): Promise<void> {
    this.#queue = this.#queue.then(() => this.#stop());
    return this.#queue;
  }

  async setPaused(paused: boolean): Promise<void> {
    await this.context.workspaceState.update(PAUSED, paused);
    this.tellPaused();
    await this.execute(paused ? "kernelLsp.pause" : "kernelLsp.resume");
  }

  /** For the palette, which offers one of Pause and Resume. */
  tellPaused(): void {
    void vscode.commands.executeCommand("setContext", "kernelLsp.paused", this.paused);
  }

  /** A command of the server's. Throws the Problem that keeps the server from running, or the server's own error. */
  async execute<T>(command: string, ...args: unknown[]): Promise<T> {
    await this.#queue;
    if (this.client?.state !== State.Running) throw this.problem ?? notRunning();
    return await this.client.sendRequest<T>("workspace/executeCommand", { command, arguments: args });
  }

  async #restart(): Promise<void> {
    await this.#stop();
    this.problem = undefined;
    this.#lastWords = "";
    this.events.starting();
    try {
      const command = await serverCommand(this.context, this.logs.main);
      const client: LanguageClient = createClient(this.context, command, this.logs, () => this.paused, {
        wanted: () => this.client === client,
        showDocument: this.events.showDocument,
        progress: this.events.progress,
        gaveUp: (times) => void this.#fail(crashed(times, this.#lastWords)),
        said: (line) => (this.#lastWords = line || this.#lastWords),
      });
      this.client = client;
      this.#listen(client);
      this.firstStart ??= performance.now();
      await within(START_SECONDS, client.start());
    } catch (error) {
      const detail = this.#lastWords || (error instanceof Error ? error.message : String(error));
      await this.#fail(error instanceof Problem ? error : didNotStart(detail));
    }
  }

  /** What an earlier client still has to say does not count. */
  #listen(client: LanguageClient): void {
    const current =
      <T>(handler: (value: T) => void) =>
      (value: T): void => {
        if (this.client === client) handler(value);
      };
    client.onNotification("kernelLsp/status", current(this.events.status));
    client.onNotification("kernelLsp/proposal", current(this.events.proposal));
    client.onNotification("kernelLsp/failure", current(this.events.failure));
    client.onDidChangeState(
      current(({ newState }) => {
        if (newState === State.Running) this.events.running();
        else if (newState === State.Starting) this.events.starting();
      }),
    );
  }

  async #fail(problem: Problem): Promise<void> {
    if (this.problem !== undefined) return; // the first says why
    this.problem = problem;
    this.logs.main.error(problem.message);
    this.events.failed(problem);
    const ran = this.client !== undefined; // and not well: what it runs in may be damaged
    if (ran && strategy() === "useBundled") await distrustServer(this.context).catch(() => undefined);
  }

  async #stop(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    if (client === undefined) return;
    // One that is just being started (again) cannot be stopped before it runs.
    if (client.state === State.Starting) await within(5, client.start()).catch(() => undefined);
    // The client gives the server two seconds and kills it then.
    await client.dispose(2000).catch((error: unknown) => this.logs.main.debug(`stopping: ${String(error)}`));
  }
}

/** Throws when it takes longer than so many seconds. */
async function within<T>(seconds: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it said nothing for ${seconds} s`)), seconds * 1000);
  });
  return await Promise.race([work, late]).finally(() => clearTimeout(timer));
}
