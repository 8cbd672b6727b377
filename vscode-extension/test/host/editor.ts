// What the tests ask VS Code, and waiting for what it will say.

import assert from "node:assert/strict";
import { join } from "node:path";
import * as vscode from "vscode";
import type { Api } from "../../src/extension";

export const WORKSPACE = process.env.TEST_WORKSPACE ?? "";

/** Seconds that a job may take where other programs keep the processor busy. On a machine at rest it takes a few. */
export const JOB = 400;

/** The extension's API, once its first server runs or could not be started. */
export async function api(): Promise<Api> {
  const extension = vscode.extensions.getExtension<Api>("kernel-lsp.kernel-lsp");
  assert.ok(extension, "the extension is not installed");
  const found = await extension.activate();
  await found.ready;
  return found;
}

/** Asks again and again until the answer is neither undefined nor false. The last error is thrown when time is over. */
export async function until<T>(what: string, ask: () => T | Promise<T>, seconds = 60): Promise<Exclude<NonNullable<T>, false>> {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    const answer = await ask();
    if (answer) return answer as Exclude<NonNullable<T>, false>;
    if (Date.now() > end) throw new Error(`never came: ${what}\n${await seen()}`);
    await pause(50);
  }
}

export function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

/** What the user sees now, for the message of a test that failed. */
async function seen(): Promise<string> {
  const found = (await api()).status();
  const document = vscode.window.activeTextEditor?.document;
  if (document === undefined) return `status: ${found.text}`;
  const messages = ours(document.uri).map(({ code, message }) => `${String(code)}: ${message}`);
  return [`status: ${found.text}`, document.fileName, ...messages, ...(await lenses(document.uri))].join("\n");
}

export async function open(name: string): Promise<vscode.TextEditor> {
  const document = await vscode.workspace.openTextDocument(vscode.Uri.file(join(WORKSPACE, name)));
  return await vscode.window.showTextDocument(document, { preview: false });
}

/** Where a part of the text stands. */
export function place({ document }: vscode.TextEditor, part: string): vscode.Range {
  const start = document.getText().indexOf(part);
  assert.notEqual(start, -1, `${document.fileName} has no ${part}`);
  return new vscode.Range(document.positionAt(start), document.positionAt(start + part.length));
}

/** Our diagnostics of a file, as their codes. */
export function codes(uri: vscode.Uri): string[] {
  return ours(uri).map(({ code }) => String(typeof code === "object" ? code.value : code));
}

export function ours(uri: vscode.Uri): vscode.Diagnostic[] {
  return vscode.languages.getDiagnostics(uri).filter(({ source }) => source === "kernel-lsp");
}

export async function lenses(uri: vscode.Uri): Promise<string[]> {
  const found = await vscode.commands.executeCommand<vscode.CodeLens[]>("vscode.executeCodeLensProvider", uri, 100);
  return found.map(({ command }) => command?.title ?? "");
}

export async function actions(uri: vscode.Uri, range: vscode.Range): Promise<vscode.CodeAction[]> {
  return await vscode.commands.executeCommand<vscode.CodeAction[]>("vscode.executeCodeActionProvider", uri, range);
}

export async function hover(uri: vscode.Uri, at: vscode.Position): Promise<string> {
  const found = await vscode.commands.executeCommand<vscode.Hover[]>("vscode.executeHoverProvider", uri, at);
  return found.flatMap(({ contents }) => contents.map((content) => (typeof content === "string" ? content : content.value))).join("\n");
}

export async function replace(editor: vscode.TextEditor, part: string, by: string): Promise<void> {
  const range = place(editor, part);
  assert.ok(await editor.edit((edit) => edit.replace(range, by)), `${part} could not be replaced`);
}

/** What the server says about itself. */
export async function debugInformation(): Promise<{ pid: number; [name: string]: unknown }> {
  const client = (await api()).client();
  assert.ok(client, "there is no client");
  return await client.sendRequest("workspace/executeCommand", { command: "kernelLsp.debugInformation", arguments: [] });
}
