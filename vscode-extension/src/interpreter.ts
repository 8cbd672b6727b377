// The Python that the user has selected: the Python extension's choice where it is installed, else the one on PATH.

import type { PythonExtension } from "@vscode/python-extension";
import * as vscode from "vscode";
import { onPath } from "./programs";

type Environments = PythonExtension["environments"];

async function environments(): Promise<Environments | undefined> {
  const extension = vscode.extensions.getExtension<PythonExtension>("ms-python.python");
  if (extension === undefined) return undefined;
  try {
    return (extension.isActive ? extension.exports : await extension.activate()).environments;
  } catch {
    return undefined; // it failed to start; it says so itself
  }
}

/** The selected interpreter's path for a resource, undefined where there is no Python at all. */
export async function selectedInterpreter(resource: vscode.Uri | undefined): Promise<string | undefined> {
  const api = await environments();
  if (api !== undefined) {
    const resolved = await api.resolveEnvironment(api.getActiveEnvironmentPath(resource));
    const path = resolved?.executable.uri?.fsPath;
    if (path !== undefined) return path;
  }
  return await pathInterpreter();
}

/** The interpreter on PATH, which no folder that is open has chosen. */
export async function pathInterpreter(): Promise<string | undefined> {
  return (await onPath("python3")) ?? (await onPath("python"));
}

/** Calls back when the user selects another interpreter, also where the Python extension is installed later. */
export function onInterpreterChange(context: vscode.ExtensionContext, changed: () => void): void {
  let subscribed = false;
  const subscribe = async (): Promise<void> => {
    const api = subscribed ? undefined : await environments();
    if (api === undefined || subscribed) return;
    subscribed = true;
    context.subscriptions.push(api.onDidChangeActiveEnvironmentPath(changed));
  };
  const installed = async (): Promise<void> => {
    const before = subscribed;
    await subscribe();
    if (subscribed && !before) changed();
  };
  void subscribe();
  context.subscriptions.push(vscode.extensions.onDidChange(() => void installed()));
}
