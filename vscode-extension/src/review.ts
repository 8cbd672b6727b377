// A new kernel for a file that holds one already: shown as a difference, and written only when the user says so.

import { basename } from "node:path";
import * as vscode from "vscode";
import type { Proposal } from "./protocol";

export const SCHEME = "kernel-lsp-proposal";

export class Review implements vscode.TextDocumentContentProvider {
  readonly #changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.#changed.event;
  readonly #open = new Map<string, Proposal>(); // by the path of the kernel file

  constructor(context: vscode.ExtensionContext) {
    context.subscriptions.push(
      vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
      vscode.commands.registerCommand("kernelLsp.acceptKernel", (uri?: vscode.Uri) => this.#accept(uri)),
      vscode.commands.registerCommand("kernelLsp.discardKernel", (uri?: vscode.Uri) => this.#close(uri)),
      vscode.workspace.onDidCloseTextDocument((document) => {
        if (document.uri.scheme === SCHEME) this.#open.delete(document.uri.path);
      }),
    );
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.#open.get(uri.path)?.text ?? "";
  }

  /** Shows the file that is there beside the one that would be. The cursor stays where the user is working. */
  async show(proposal: Proposal): Promise<void> {
    const file = vscode.Uri.parse(proposal.file);
    const proposed = file.with({ scheme: SCHEME });
    this.#open.set(proposed.path, proposal);
    this.#changed.fire(proposed);
    const title = `${basename(file.fsPath)}: now ↔ new (${proposal.why})`;
    await vscode.commands.executeCommand("vscode.diff", file, proposed, title, { preserveFocus: true, preview: false });
  }

  /** Replaces the file's text in one edit, which one undo takes back, and saves it. */
  async #accept(uri: vscode.Uri | undefined): Promise<void> {
    const proposal = this.#find(uri);
    if (proposal === undefined) return;
    const document = await vscode.workspace.openTextDocument(vscode.Uri.parse(proposal.file));
    const whole = new vscode.Range(0, 0, document.lineCount, 0);
    const edit = new vscode.WorkspaceEdit();
    edit.replace(document.uri, whole, proposal.text);
    if (!(await vscode.workspace.applyEdit(edit)) || !(await document.save())) {
      void vscode.window.showErrorMessage(`${document.uri.fsPath} could not be written; it is as it was.`);
      return;
    }
    await this.#close(uri);
    await vscode.window.showTextDocument(document, { preview: false });
  }

  async #close(uri: vscode.Uri | undefined): Promise<void> {
    const proposal = this.#find(uri);
    if (proposal === undefined) return;
    const path = vscode.Uri.parse(proposal.file).path;
    this.#open.delete(path);
    const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs).filter((tab) => isReviewOf(tab, path));
    await vscode.window.tabGroups.close(tabs);
  }

  #find(uri: vscode.Uri | undefined): Proposal | undefined {
    const input = vscode.window.tabGroups.activeTabGroup.activeTab?.input;
    const shown = input instanceof vscode.TabInputTextDiff ? input.modified : undefined;
    const path = (uri?.scheme === SCHEME ? uri : shown)?.path;
    return path === undefined ? undefined : this.#open.get(path);
  }
}

function isReviewOf(tab: vscode.Tab, path: string): boolean {
  return tab.input instanceof vscode.TabInputTextDiff && tab.input.modified.scheme === SCHEME && tab.input.modified.path === path;
}
