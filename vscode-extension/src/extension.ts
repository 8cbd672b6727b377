// Where VS Code begins and ends: everything is made here and handed to the parts that need it.

// biome-ignore assist/source/organizeImports: loading.ts takes the time at which it is loaded, so it comes first
import { LOADING } from "./loading";
import * as vscode from "vscode";
import type { LanguageClient } from "vscode-languageclient/node";
import { registerCommands } from "./commands";
import { onInterpreterChange } from "./interpreter";
import { createLogs } from "./logs";
import { tellFailure } from "./messages";
import { killAll } from "./programs";
import { Progress } from "./progress";
import type { Job } from "./protocol";
import { Reports } from "./report";
import { Review } from "./review";
import { strategy } from "./server";
import { Session } from "./session";
import { StatusItem, type StatusView } from "./status";

const LOADED = performance.now();

/** For tests and for other extensions. */
export interface Api {
  client: () => LanguageClient | undefined;
  /** Settled when the first server runs, or could not be started. */
  ready: Promise<void>;
  /**
   * Loading this extension, and from its activation to when it starts the server. VS Code prepares other things in
   * between, which is not counted.
   */
  readonly activationMilliseconds: number;
  status: () => StatusView;
}

let session: Session | undefined;

export function activate(context: vscode.ExtensionContext): Api {
  const began = performance.now();
  const logs = createLogs(context);
  const item = new StatusItem(context);
  const reports = new Reports();
  const progress = new Progress();
  let jobs: Job[] = [];
  context.subscriptions.push(reports, progress);

  const current = new Session(context, logs, {
    starting: () => {
      jobs = [];
      progress.clear();
      item.starting();
    },
    running: () => item.update({ state: current.paused ? "paused" : "idle", message: "", jobs: [] }),
    failed: (problem) => {
      jobs = [];
      progress.clear();
      item.failed(problem);
    },
    status: (status) => {
      jobs = status.jobs;
      item.update(status);
    },
    proposal: (proposal) => review.offer(proposal),
    failure: (failure) => void tellFailure(failure),
    showDocument: (uri) => reports.show(uri),
    progress: (token, reported) => progress.report(token, reported),
  });
  session = current;
  const review = new Review(current);
  current.tellPaused();
  const activationMilliseconds = (): number => LOADED - LOADING + (current.firstStart ?? performance.now()) - began;
  registerCommands({ session: current, jobs: () => jobs, activationMilliseconds });
  restartWhenNeeded(context, current, logs.main);
  return {
    client: () => current.client,
    ready: current.restart(),
    get activationMilliseconds() {
      return activationMilliseconds();
    },
    status: () => item.view,
  };
}

export async function deactivate(): Promise<void> {
  killAll();
  await session?.stop();
}

function restartWhenNeeded(context: vscode.ExtensionContext, current: Session, logs: vscode.LogOutputChannel): void {
  const settingsOfStart = ["importStrategy", "python"].map((name) => `kernelLsp.${name}`);
  context.subscriptions.push(
    // What was not run in an untrusted folder is now: the server has to look at everything again.
    vscode.workspace.onDidGrantWorkspaceTrust(() => void current.restart()),
    vscode.workspace.onDidChangeConfiguration((event) => {
      const isTheServers = strategy() === "fromEnvironment" && event.affectsConfiguration("kernelLsp.interpreter");
      if (isTheServers || settingsOfStart.some((name) => event.affectsConfiguration(name))) void current.restart();
    }),
  );
  onInterpreterChange(context, () => {
    if (strategy() === "fromEnvironment" || current.problem !== undefined) return void current.restart();
    // The server asks for its settings then, and the interpreter is among them.
    const notified = current.client?.sendNotification("workspace/didChangeConfiguration", { settings: null });
    void notified?.catch((error: unknown) => logs.debug(String(error))); // it is being started again, and asks anyway
  });
}
