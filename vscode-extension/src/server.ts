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
  const bundled = strategy() === "useBundled";
  const python = bundled ? await bundledServer(context, log) : await environmentServer();
  // A file of the user's called like one of our packages must not stand in for it; nor, for the server that comes with
  // the extension, may PYTHONPATH, which is the worker's affair and reaches it through the environment.
  const isolation = bundled ? "-I" : "-P";
  return { command: python, args: [isolation, "-m", "kernel_lsp.cli", "serve", "--log-level", logLevel(log)] };
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
