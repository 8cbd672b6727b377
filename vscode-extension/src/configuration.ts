// The settings as the server gets them: only what somebody has set, since a default of ours would hide pyproject.toml's.

import * as vscode from "vscode";
import { SECTION } from "./protocol";

/** The settings that are this extension's and mean nothing to the server. */
const OWN = new Set(["importStrategy", "python", "trace.server"]);

export type Settings = { [name: string]: unknown };

/** Names without `kernelLsp.`, from the package's own list: `device`, `openai.baseUrl`. */
export function settingNames(extension: vscode.Extension<unknown>): string[] {
  const sections = extension.packageJSON.contributes.configuration as { properties: Settings }[];
  return sections.flatMap(({ properties }) => Object.keys(properties)).map((name) => name.slice(SECTION.length + 1));
}

/** What is set for a folder (or without one), nested as the server's groups are. */
export function explicitSettings(names: string[], scope: vscode.Uri | undefined): Settings {
  const configuration = vscode.workspace.getConfiguration(SECTION, scope ?? null);
  const found: Settings = {};
  for (const name of names) {
    if (OWN.has(name)) continue;
    const seen = configuration.inspect(name);
    const isSet = [seen?.globalValue, seen?.workspaceValue, seen?.workspaceFolderValue].some((v) => v !== undefined);
    // The merged value: it leaves out what an untrusted workspace may not set.
    if (isSet) put(found, name, configuration.get(name));
  }
  return found;
}

function put(target: Settings, name: string, value: unknown): void {
  const [group, inner] = name.split(".") as [string, string?];
  if (inner === undefined) target[group] = value;
  else target[group] = { ...(target[group] as Settings | undefined), [inner]: value };
}

export function setting<T>(name: string, fallback: T, scope?: vscode.Uri): T {
  return vscode.workspace.getConfiguration(SECTION, scope ?? null).get<T>(name, fallback);
}
