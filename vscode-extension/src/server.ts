// How the server is started: from its own environment, or from the one the user has selected.

import * as vscode from "vscode";
import type { Executable } from "vscode-languageclient/node";
import { setting } from "./configuration";
import { bundledServer } from "./environment";
import { selectedInterpreter } from "./interpreter";
import * as problems from "./problems";
import { run } from "./programs";

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
  const python = setting("interpreter", "") || (await selectedInterpreter(vscode.workspace.workspaceFolders?.[0]?.uri));
  if (python === undefined) throw problems.noPython();
  const found = run(python, ["-P", "-c", "import kernel_lsp.cli"], 20);
  await found.catch(() => {
    throw problems.notInEnvironment(python);
  });
  return python;
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
