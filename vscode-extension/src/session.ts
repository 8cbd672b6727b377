// The server's life: started, stopped, started again. One at a time, whatever asks for it.

import * as vscode from "vscode";
import { type LanguageClient, State } from "vscode-languageclient/node";
import { createClient } from "./client";
import type { Logs } from "./logs";
import { didNotStart, notRunning, Problem } from "./problems";
import type { Proposal, Status } from "./protocol";
import { serverCommand } from "./server";

const PAUSED = "paused"; // key in the workspace's state

export interface SessionEvents {
  starting: () => void;
  running: () => void;
  failed: (problem: Problem) => void;
  status: (status: Status) => void;
  proposal: (proposal: Proposal) => void;
  showDocument: (uri: vscode.Uri) => Promise<boolean>;
}

export class Session {
  client: LanguageClient | undefined;
  problem: Problem | undefined;
  /** When the first server was about to be started: `performance.now()`. */
  firstStart: number | undefined;
  #queue: Promise<void> = Promise.resolve();

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
    await this.execute(paused ? "kernelLsp.pause" : "kernelLsp.resume");
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
    this.events.starting();
    try {
      const command = await serverCommand(this.context, this.logs.main);
      const client = createClient(this.context, command, this.logs, () => this.paused, {
        showDocument: this.events.showDocument,
        gaveUp: (problem) => this.#fail(problem),
      });
      this.client = client;
      client.onNotification("kernelLsp/status", this.events.status);
      client.onNotification("kernelLsp/proposal", this.events.proposal);
      client.onDidChangeState(({ newState }) => {
        if (newState === State.Running) this.events.running();
        else if (newState === State.Starting) this.events.starting();
      });
      this.firstStart ??= performance.now();
      await client.start();
    } catch (error) {
      this.#fail(error instanceof Problem ? error : didNotStart(error instanceof Error ? error.message : String(error)));
    }
  }

  #fail(problem: Problem): void {
    this.problem = problem;
    this.logs.main.error(problem.message);
    this.events.failed(problem);
  }

  async #stop(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    if (client === undefined) return;
    // The client gives the server two seconds and kills it then; a server that never started has nothing to stop.
    await client.dispose(2000).catch((error: unknown) => this.logs.main.debug(`stopping: ${String(error)}`));
  }
}
