// How the server is started: from its own environment, or from the one the user has selected.

import { homedir } from "node:os";
import { join, resolve } from "node:path";
import * as vscode from "vscode";
import type { Executable } from "vscode-languageclient/node";
import { setting } from "./configuration";
import { bundledServer } from "./environment";
import { selectedInterpreter } from "./interpreter";
import * as problems from "./problems";
import { ProgramFailed, run } from "./programs";

export type Strategy = "useBundled" | "fromEnvironment";

export function strategy(): Strategy {
  return setting<Strategy>("importStrategy", "useBundled");
}

/** The command that runs the server. Throws a Problem. */
export async function serverCommand(context: vscode.ExtensionContext, log: vscode.LogOutputChannel): Promise<Executable> {
  const python = strategy() === "useBundled" ? await bundledServer(context, log) : await environmentServer();
  // -P: a file of the user's called kernel_lsp.py, or like one of our packages, must not stand in for it.
  const args = ["-P", "-m", "kernel_lsp.cli", "serve", "--log-level", logLevel(log)];
  const environment = { ...process.env };
  delete environment["PYTHONPATH"];
  delete environment["PYTHONHOME"];
  return { command: python, args, options: { env: strategy() === "useBundled" ? environment : process.env } };
}

async function environmentServer(): Promise<string> {
  if (!vscode.workspace.isTrusted) throw problems.untrustedEnvironment();
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
  const named = setting("interpreter", "", folder);
  const python = named === "" ? await selectedInterpreter(folder) : resolveInterpreter(named, folder);
  if (python === undefined) throw problems.noPython();
  await run(python, ["-P", "-c", "import kernel_lsp.cli"], 20).catch((error: unknown) => {
    const output = error instanceof ProgramFailed ? error.output : String(error);
    if (/No module named 'kernel_lsp/.test(output)) throw problems.notInEnvironment(python);
    throw problems.environmentDoesNotRun(python, output.split("\n").at(-1) ?? "");
  });
  return python;
}

/** As the server resolves it: `~` is the home folder, a path with a slash is relative to the folder, a name is PATH's. */
function resolveInterpreter(named: string, folder: vscode.Uri | undefined): string {
  if (/^~[/\\]/.test(named)) return join(homedir(), named.slice(2));
  return /[/\\]/.test(named) ? resolve(folder?.fsPath ?? homedir(), named) : named;
}

function logLevel(log: vscode.LogOutputChannel): string {
  switch (log.logLevel) {
    case vscode.LogLevel.Trace:
    case vscode.LogLevel.Debug:
      return "debug";
    case vscode.LogLevel.Info:
      return "info";
    case vscode.LogLevel.Warning:
      return "warning";
    default:
      return "error";
  }
}
