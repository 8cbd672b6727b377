// Which class a command means: the one at the cursor, the only one, or the one that the user picks.

import * as vscode from "vscode";
import type { ModuleClass } from "./protocol";
import type { Session } from "./session";

/** The argument of the server's commands. */
export interface ClassArgument {
  uri: string;
  className: string;
  version: number;
}

export interface Chosen {
  argument: ClassArgument;
  found: ModuleClass;
}

/** Undefined where the file has no such class, which is said, or the user picked none. */
export async function chooseClass(
  session: Session,
  wanted: (found: ModuleClass) => boolean = () => true,
  otherwise = "There is no class here that derives from torch.nn.Module.",
): Promise<Chosen | undefined> {
  const editor = vscode.window.activeTextEditor;
  if (editor?.document.languageId !== "python") {
    void vscode.window.showInformationMessage("Open a Python file with a class that derives from torch.nn.Module.");
    return undefined;
  }
  const { document, selection } = editor;
  const uri = document.uri.toString();
  const classes = (await session.execute<ModuleClass[]>("kernelLsp.classes", { uri })).filter(wanted);
  const line = selection.active.line;
  const here = classes.filter(({ range }) => range.start.line <= line && line <= range.end.line);
  const found = here.at(-1) ?? (classes.length > 1 ? await pick(classes) : classes[0]);
  if (found !== undefined) return { argument: { uri, className: found.className, version: document.version }, found };
  if (classes.length === 0) void vscode.window.showInformationMessage(otherwise);
  return undefined;
}

async function pick(classes: ModuleClass[]): Promise<ModuleClass | undefined> {
  const items = classes.map((found) => ({ label: found.className, description: `line ${found.range.start.line + 1}`, found }));
  return (await vscode.window.showQuickPick(items, { placeHolder: "Which class?" }))?.found;
}
