// A new kernel for a file that holds one already: shown as a difference, and written only when the user says so.

import { basename } from "node:path";
import * as vscode from "vscode";
import type { Proposal } from "./protocol";

export const SCHEME = "kernel-lsp-proposal";

export class Review implements vscode.TextDocumentContentProvider {
  readonly #changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.#changed.event;
  readonly #open = new Map<string, Proposal>(); // undecided ones, by the path of the kernel file
  #latest: Proposal | undefined; // of those

  constructor(context: vscode.ExtensionContext) {
    context.subscriptions.push(
      vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
      vscode.commands.registerCommand("kernelLsp.acceptKernel", (uri?: vscode.Uri) => this.#accept(uri)),
      vscode.commands.registerCommand("kernelLsp.discardKernel", (uri?: vscode.Uri) => this.#close(uri)),
      vscode.commands.registerCommand("kernelLsp.reviewKernel", () => this.#showLatest()),
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
    this.#latest = proposal;
    this.#changed.fire(proposed);
    const title = `${basename(file.fsPath)}: now ↔ new (${proposal.why})`;
    const options = { preserveFocus: true, preview: false, viewColumn: vscode.ViewColumn.Beside };
    await vscode.commands.executeCommand("vscode.diff", file, proposed, title, options);
  }

  /** The latest one again, whose difference was closed without a decision. */
  async #showLatest(): Promise<void> {
    if (this.#latest !== undefined) await this.show(this.#latest);
    else void vscode.window.showInformationMessage("There is no new kernel to review.");
  }

  /** Replaces the file's text in one edit, which one undo takes back, and saves it as it was validated. */
  async #accept(uri: vscode.Uri | undefined): Promise<void> {
    const proposal = this.#find(uri);
    if (proposal === undefined) return;
    const file = vscode.Uri.parse(proposal.file);
    await this.#close(uri);
    const edit = new vscode.WorkspaceEdit();
    edit.createFile(file, { ignoreIfExists: true }); // the user may have deleted it meanwhile
    await vscode.workspace.applyEdit(edit);
    const document = await vscode.workspace.openTextDocument(file);
    const editor = await vscode.window.showTextDocument(document, { preview: false });
    const whole = new vscode.Range(0, 0, document.lineCount, 0);
    const replaced = await editor.edit((change) => change.replace(whole, proposal.text));
    // A formatter would change the text that was validated.
    if (replaced) await vscode.commands.executeCommand("workbench.action.files.saveWithoutFormatting");
    if (!replaced || document.isDirty) {
      const state = replaced ? "The new kernel is in the editor, not on disk." : "It is as it was.";
      void vscode.window.showErrorMessage(`${file.fsPath} could not be written. ${state}`);
    }
  }

  async #close(uri: vscode.Uri | undefined): Promise<void> {
    const proposal = this.#find(uri);
    if (proposal === undefined) return;
    const path = vscode.Uri.parse(proposal.file).path;
    this.#open.delete(path);
    if (this.#latest === proposal) this.#latest = undefined;
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
