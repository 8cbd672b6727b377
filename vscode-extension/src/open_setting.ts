// Shows a setting where the user can change it.

import * as vscode from "vscode";

type Properties = { [name: string]: { scope?: string } };

/**
 * Opens the settings' editor at a setting. In a remote window what is set for a machine is not among the user's settings but
 * among those of the remote machine; on the user's page VS Code would say that there is no such setting.
 */
export async function openSetting(extension: vscode.Extension<unknown>, name: string): Promise<void> {
  const sections = extension.packageJSON.contributes.configuration as { properties: Properties }[];
  const scope = sections.map(({ properties }) => properties[name]?.scope).find((found) => found !== undefined);
  if (vscode.env.remoteName !== undefined && scope?.startsWith("machine") === true) {
    await vscode.commands.executeCommand("workbench.action.openRemoteSettings", { query: name });
  } else {
    await vscode.commands.executeCommand("workbench.action.openSettings", name);
  }
}
