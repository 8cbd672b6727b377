// Keeps a kernel being validated, over and over, while a file says "on": what the user would do beside typing. It also
// writes down how long kernel-lsp took to activate.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";
import type { Api } from "../../../src/extension";

const FILE = "group_norm_silu.py";
const CLASS = "GroupNormSiLU";
const pause = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds));

export async function activate(): Promise<void> {
  const extension = vscode.extensions.getExtension<Api>("kernel-lsp.kernel-lsp");
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath;
  if (extension === undefined || folder === undefined) return;
  const found = await extension.activate();
  await found.ready;
  writeFileSync(join(folder, "activation"), String(found.activationMilliseconds));
  void drive(found, folder);
}

async function drive(found: Api, folder: string): Promise<void> {
  const uri = vscode.Uri.file(join(folder, FILE));
  const document = await vscode.workspace.openTextDocument(uri);
  const execute = (command: string): Promise<unknown> => {
    const argument = { uri: uri.toString(), className: CLASS, version: document.version };
    return found.client()?.sendRequest("workspace/executeCommand", { command, arguments: [argument] }) ?? Promise.resolve();
  };
  const wanted = (): boolean => readFileSync(join(folder, "validate"), "utf8") === "on";
  const busy = (): boolean => found.status().state === "busy";
  for (;;) {
    await pause(20);
    if (wanted() && !busy()) {
      await execute(existsSync(join(folder, "kernels")) ? "kernelLsp.validate" : "kernelLsp.generate");
      for (let tries = 0; !busy() && tries < 100; tries += 1) await pause(5); // the status comes after the answer
    } else if (!wanted() && busy()) {
      await execute("kernelLsp.cancel");
      await pause(200);
    }
  }
}
