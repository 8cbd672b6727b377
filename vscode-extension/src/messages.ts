// Error messages, each with the buttons that help. All have Show Log.

import * as vscode from "vscode";
import { ResponseError } from "vscode-languageclient/node";
import { helpFor, namedSetting } from "./help";
import { type Action, Problem } from "./problems";
import type { Failure } from "./protocol";

const TITLES: Record<Action, string> = {
  "kernelLsp.restartServer": "Try Again",
  "kernelLsp.selectGpu": "Select GPU",
  "kernelLsp.showLogs": "Show Log",
  addExampleInputs: "Add Example Inputs",
  generateAgain: "Generate Again",
  manageTrust: "Manage Trust",
  openSettings: "Open Settings",
  selectInterpreter: "Select Interpreter",
};

/** The user asked for something, and it could not even begin. */
export async function explain(error: unknown): Promise<void> {
  if (error instanceof Problem) return await tell(error.message, error.actions);
  const code = error instanceof ResponseError ? (error.data as { code?: string } | undefined)?.code : undefined;
  const message = error instanceof Error ? error.message : String(error);
  await tell(message, helpFor(code ?? "", message));
}

/** What the user asked for has failed on the way. */
export async function tellFailure(failure: Failure): Promise<void> {
  await tell(failure.message, helpFor(failure.code, failure.message), failure);
}

async function tell(text: string, actions: Action[] = [], failure?: Failure): Promise<void> {
  const all: Action[] = [...actions, "kernelLsp.showLogs"];
  const show = failure?.severity === "warning" ? vscode.window.showWarningMessage : vscode.window.showErrorMessage;
  const chosen = await show(text, ...all.map((action) => TITLES[action]));
  const action = all.find((candidate) => TITLES[candidate] === chosen);
  if (action !== undefined) await act(action, text, failure);
}

async function act(action: Action, text: string, failure: Failure | undefined): Promise<void> {
  switch (action) {
    case "addExampleInputs":
      if (failure !== undefined) await addExampleInputs(failure);
      break;
    case "generateAgain":
      if (failure !== undefined) await generate(failure);
      break;
    case "manageTrust":
      await vscode.commands.executeCommand("workbench.trust.manage");
      break;
    case "openSettings":
      await vscode.commands.executeCommand("kernelLsp.openSetting", namedSetting(text) ?? "kernelLsp");
      break;
    case "selectInterpreter":
      if (vscode.extensions.getExtension("ms-python.python") !== undefined) await vscode.commands.executeCommand("python.setInterpreter");
      else await vscode.commands.executeCommand("kernelLsp.openSetting", "kernelLsp.interpreter");
      break;
    default:
      await vscode.commands.executeCommand(action);
  }
}

async function generate({ uri, className }: Failure): Promise<void> {
  await vscode.commands.executeCommand("kernelLsp.generate", { uri, className });
}

/** Makes the edit of the server's code action, where the user sees it. */
async function addExampleInputs({ uri, className }: Failure): Promise<void> {
  const document = await vscode.workspace.openTextDocument(vscode.Uri.parse(uri));
  const whole = new vscode.Range(0, 0, document.lineCount, 0);
  const found = await vscode.commands.executeCommand<vscode.CodeAction[]>("vscode.executeCodeActionProvider", document.uri, whole);
  const edit = found.find(({ title }) => title === `Add example inputs for ${className}`)?.edit;
  if (edit === undefined) return;
  const end = document.lineCount;
  await vscode.workspace.applyEdit(edit);
  const editor = await vscode.window.showTextDocument(document);
  editor.revealRange(new vscode.Range(end, 0, document.lineCount, 0), vscode.TextEditorRevealType.InCenter);
}
