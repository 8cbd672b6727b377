// The commands of the palette. The server's own, which lenses and code actions carry, are registered by the client.

import * as vscode from "vscode";
import { chooseClass, classHere } from "./classes";
import { printDebugInformation } from "./debug_information";
import { selectGpu } from "./gpu";
import { explain } from "./messages";
import { openSetting } from "./open_setting";
import type { Job } from "./protocol";
import type { Session } from "./session";

export interface CommandContext {
  session: Session;
  /** The jobs that run, as last heard. */
  jobs: () => Job[];
  activationMilliseconds: () => number;
}

export function registerCommands({ session, jobs, activationMilliseconds }: CommandContext): void {
  const register = (name: string, action: () => Promise<void>): void => {
    const command = vscode.commands.registerCommand(`kernelLsp.${name}`, () => action().catch(explain));
    session.context.subscriptions.push(command);
  };
  const onClass = (command: string, needsKernel: boolean) => async (): Promise<void> => {
    const chosen = await chooseClass(session, needsKernel);
    if (chosen !== undefined) await session.execute(command, chosen.argument);
  };

  register("generateAtCursor", onClass("kernelLsp.generate", false));
  register("validateAtCursor", onClass("kernelLsp.validate", true));
  register("showReportAtCursor", onClass("kernelLsp.showReport", false));
  register("cancelAtCursor", async () => {
    const jobId = (await classHere(session))?.running ?? (await pickJob(jobs()))?.id;
    if (jobId !== undefined) await session.execute("kernelLsp.cancel", { jobId });
  });
  register("openKernelBeside", async () => {
    const chosen = await chooseClass(session, true);
    if (chosen?.found.kernel == null) return;
    const options = { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true };
    await vscode.window.showTextDocument(vscode.Uri.parse(chosen.found.kernel), options);
  });
  register("selectGpu", () => selectGpu(session));
  register("pauseBackground", () => session.setPaused(true));
  register("resumeBackground", () => session.setPaused(false));
  register("restartServer", async () => {
    await session.restart();
    if (session.problem !== undefined) throw session.problem;
  });
  register("showLogs", async () => session.logs.main.show());
  register("printDebugInformation", () => printDebugInformation(session, activationMilliseconds()));
  const { extension, subscriptions } = session.context; // openSetting is for messages, the status and the walkthrough
  subscriptions.push(vscode.commands.registerCommand("kernelLsp.openSetting", (name: string) => openSetting(extension, name)));
  register("explainProblem", async () => {
    if (session.problem !== undefined) throw session.problem;
  });
}

async function pickJob(jobs: Job[]): Promise<Job | undefined> {
  if (jobs.length < 2) return jobs[0];
  const items = jobs.map((job) => ({ label: job.className, description: job.message, job }));
  return (await vscode.window.showQuickPick(items, { placeHolder: "Cancel which job?" }))?.job;
}
