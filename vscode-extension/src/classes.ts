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

/**
 * The class that a command means; of those with a kernel, where it `needsKernel`. Undefined where there is none, which is
 * said, or the user picked none.
 */
export async function chooseClass(session: Session, needsKernel: boolean): Promise<Chosen | undefined> {
  const { document } = vscode.window.activeTextEditor ?? {};
  if (document?.languageId !== "python") return say("Open a Python file with a class that derives from torch.nn.Module.");
  if (document.uri.scheme !== "file") return say("Save the file first: modules are imported from disk.");
  const classes = await classesOf(session, document);
  const usable = classes.filter(({ kernel }) => kernel !== null || !needsKernel);
  const here = await classHere(session, classes);
  if (here !== undefined && !usable.includes(here)) return say(`${here.className} has no kernel yet. Generate one first.`);
  if (classes.length === 0) return say("There is no class here that derives from torch.nn.Module.");
  if (usable.length === 0) return say("No class here has a kernel yet. Generate one first.");
  const found = here ?? (usable.length > 1 ? await pick(usable) : usable[0]);
  if (found === undefined) return undefined;
  const argument = { uri: document.uri.toString(), className: found.className, version: document.version };
  return { argument, found };
}

/** The class at the cursor, the innermost. */
export async function classHere(session: Session, classes?: ModuleClass[]): Promise<ModuleClass | undefined> {
  const editor = vscode.window.activeTextEditor;
  if (editor?.document.languageId !== "python") return undefined;
  const line = editor.selection.active.line;
  const known = classes ?? (await classesOf(session, editor.document));
  return known.findLast(({ range }) => range.start.line <= line && line <= range.end.line);
}

export function classesOf(session: Session, document: vscode.TextDocument): Promise<ModuleClass[]> {
  return session.execute<ModuleClass[]>("kernelLsp.classes", { uri: document.uri.toString() });
}

function say(message: string): undefined {
  void vscode.window.showInformationMessage(message);
}

async function pick(classes: ModuleClass[]): Promise<ModuleClass | undefined> {
  const items = classes.map((found) => ({ label: found.className, description: `line ${found.range.start.line + 1}`, found }));
  return (await vscode.window.showQuickPick(items, { placeHolder: "Which class?" }))?.found;
}
