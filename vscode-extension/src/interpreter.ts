// The Python that the user has selected: the Python extension's choice where it is installed, else the one on PATH.

import type { PythonExtension } from "@vscode/python-extension";
import * as vscode from "vscode";
import { onPath } from "./programs";

type Environments = PythonExtension["environments"];

/** What the Python extension gets to answer; it may still be starting. A later answer comes as a change of selection. */
const PATIENCE = 5000; // milliseconds

async function environments(): Promise<Environments | undefined> {
  const extension = vscode.extensions.getExtension<PythonExtension>("ms-python.python");
  if (extension === undefined) return undefined;
  return (extension.isActive ? extension.exports : await extension.activate()).environments;
}

/** The selected interpreter's path for a resource, undefined where there is no Python at all. Never throws. */
export async function selectedInterpreter(resource: vscode.Uri | undefined): Promise<string | undefined> {
  if (!vscode.workspace.isTrusted) return await pathInterpreter(); // the selection may lie in the folder
  const late = new Promise<undefined>((resolve) => setTimeout(resolve, PATIENCE, undefined));
  const asked = askPythonExtension(resource).catch(() => undefined); // it says itself what is wrong with it
  return (await Promise.race([asked, late])) ?? (await pathInterpreter());
}

async function askPythonExtension(resource: vscode.Uri | undefined): Promise<string | undefined> {
  const api = await environments();
  const resolved = await api?.resolveEnvironment(api.getActiveEnvironmentPath(resource));
  return resolved?.executable.uri?.fsPath;
}

/** The interpreter on PATH; in a folder that is not trusted none that lies in it. */
export async function pathInterpreter(): Promise<string | undefined> {
  for (const name of ["python3", "python"]) {
    const path = await onPath(name);
    if (path !== undefined && mayRun(path)) return path;
  }
  return undefined;
}

/** Whether a program may be started: where folders are not trusted, none of theirs. */
export function mayRun(path: string): boolean {
  return vscode.workspace.isTrusted || vscode.workspace.getWorkspaceFolder(vscode.Uri.file(path)) === undefined;
}

/** Calls back when the user selects another interpreter, also where the Python extension starts or is installed later. */
export function onInterpreterChange(context: vscode.ExtensionContext, changed: () => void): void {
  let subscribed = false;
  const began = Date.now();
  const subscribe = async (): Promise<void> => {
    const api = subscribed ? undefined : await environments().catch(() => undefined);
    if (api === undefined || subscribed) return;
    subscribed = true;
    context.subscriptions.push(api.onDidChangeActiveEnvironmentPath(changed));
    if (Date.now() - began > PATIENCE) changed(); // what was told before it had started was PATH's
  };
  void subscribe();
  context.subscriptions.push(vscode.extensions.onDidChange(() => void subscribe()));
}
