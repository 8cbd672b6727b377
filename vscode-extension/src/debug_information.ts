// Print Debug Information: what a bug report needs, as a document to copy from. Nothing of the user's code.

import * as vscode from "vscode";
import { explicitSettings, settingNames } from "./configuration";
import { selectedInterpreter } from "./interpreter";
import { strategy } from "./server";
import type { Session } from "./session";

export async function printDebugInformation(session: Session, activationMilliseconds: number): Promise<void> {
  const { extension } = session.context;
  const names = settingNames(extension);
  const information = {
    extension: extension.packageJSON.version,
    vscode: vscode.version,
    host: vscode.env.appHost,
    remote: vscode.env.remoteName ?? null,
    platform: `${process.platform} ${process.arch}`,
    trusted: vscode.workspace.isTrusted,
    folders: vscode.workspace.workspaceFolders?.length ?? 0,
    importStrategy: strategy(),
    selectedInterpreter: (await selectedInterpreter(vscode.workspace.workspaceFolders?.[0]?.uri)) ?? null,
    settings: Object.keys(explicitSettings(names, undefined)), // their names: a value may be private
    activationMilliseconds: Math.round(activationMilliseconds),
    problem: session.problem?.message ?? null,
    server: await session.execute("kernelLsp.debugInformation").catch((error: Error) => error.message),
  };
  const content = JSON.stringify(information, null, 2);
  await vscode.window.showTextDocument(await vscode.workspace.openTextDocument({ language: "json", content }));
}
