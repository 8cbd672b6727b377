// A new kernel for a file that holds one already: offered above its class, compared when the user wants to, and written only
// when the user says so.

import { basename } from "node:path";
import * as vscode from "vscode";
import { classesOf } from "./classes";
import { explain } from "./messages";
import { Problem } from "./problems";
import type { Proposal } from "./protocol";
import type { Session } from "./session";

export const SCHEME = "kernel-lsp-proposal";
const NOW = "now"; // query of the side that shows the file as it is

export class Review implements vscode.TextDocumentContentProvider, vscode.CodeLensProvider {
  readonly #changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.#changed.event;
  readonly #decided = new vscode.EventEmitter<void>();
  readonly onDidChangeCodeLenses = this.#decided.event;
  readonly #open = new Map<string, Proposal>(); // undecided ones, by the path of the kernel file
  readonly #item = vscode.window.createStatusBarItem("kernelLsp.review", vscode.StatusBarAlignment.Left, -101);
  #last = vscode.window.activeTextEditor; // where the user works, besides reviews

  constructor(readonly session: Session) {
    this.#item.name = "Kernel LSP New Kernel";
    this.#item.command = "kernelLsp.reviewKernel";
    const command = (name: string, action: (uri?: vscode.Uri) => Promise<void>): vscode.Disposable =>
      vscode.commands.registerCommand(`kernelLsp.${name}`, action);
    session.context.subscriptions.push(
      this.#item,
      vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
      vscode.languages.registerCodeLensProvider({ language: "python", scheme: "file" }, this),
      vscode.window.onDidChangeActiveTextEditor((editor) => {
        if (editor !== undefined && editor.document.uri.scheme !== SCHEME) this.#last = editor;
      }),
      vscode.workspace.onDidChangeTextDocument(({ document }) => this.#changed.fire(sides(document.uri).now)),
      command("acceptKernel", (uri) => this.#accept(uri)),
      command("discardKernel", (uri) => this.#discard(uri)),
      command("reviewKernel", (uri) => this.#compare(uri)),
    );
  }

  /** Offers a kernel, where the user looks anyway. Nothing opens. */
  offer(proposal: Proposal): void {
    const file = vscode.Uri.parse(proposal.file);
    this.#open.delete(file.path); // the latest is the last
    this.#open.set(file.path, proposal);
    this.#changed.fire(sides(file).proposed);
    this.#show();
  }

  async provideCodeLenses(document: vscode.TextDocument): Promise<vscode.CodeLens[]> {
    const mine = [...this.#open.values()].filter(({ uri }) => vscode.Uri.parse(uri).toString() === document.uri.toString());
    if (mine.length === 0) return [];
    const classes = await classesOf(this.session, document).catch(() => []); // without a server there are no other lenses either
    return mine.flatMap((proposal) => {
      const found = classes.find(({ className }) => className === proposal.className);
      if (found === undefined) return [];
      let line = found.range.start.line; // of the first decorator
      while (line < found.range.end.line && !/^\s*class\b/.test(document.lineAt(line).text)) line += 1;
      const at = new vscode.Range(line, 0, line, 0);
      const uri = sides(vscode.Uri.parse(proposal.file)).proposed;
      const lens = (title: string, command: string): vscode.CodeLens =>
        new vscode.CodeLens(at, { title, command: `kernelLsp.${command}`, arguments: [uri], tooltip: proposal.why });
      return [lens("New kernel: Replace", "acceptKernel"), lens("Keep", "discardKernel"), lens("Compare", "reviewKernel")];
    });
  }

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    if (uri.query !== NOW) return withFoldedHeader(this.#open.get(uri.path)?.text ?? "");
    const file = uri.with({ scheme: "file", query: "" });
    return await vscode.workspace.openTextDocument(file).then(
      (document) => withFoldedHeader(document.getText()),
      () => "", // deleted meanwhile
    );
  }

  /** Shows the file that is there beside the one that would be, in front, since only there VS Code shows the buttons. */
  async #compare(uri: vscode.Uri | undefined): Promise<void> {
    const proposal = this.#find(uri) ?? [...this.#open.values()].at(-1);
    if (proposal === undefined) {
      void vscode.window.showInformationMessage("There is no new kernel to review.");
      return;
    }
    const file = vscode.Uri.parse(proposal.file);
    const { now, proposed } = sides(file);
    const title = `${basename(file.fsPath)}: now ↔ new (${proposal.why})`;
    const column = this.#tabs(proposal)[0]?.group.viewColumn ?? vscode.ViewColumn.Beside;
    await vscode.commands.executeCommand("vscode.diff", now, proposed, title, { preview: false, viewColumn: column });
  }

  /** Replaces the file's text in one edit, which one undo takes back, and saves it as it was validated. */
  async #accept(uri: vscode.Uri | undefined): Promise<void> {
    const proposal = this.#find(uri);
    if (proposal === undefined) return;
    const before = this.#last;
    const file = vscode.Uri.parse(proposal.file);
    const tab = allTabs().find(({ input }) => input instanceof vscode.TabInputText && input.uri.path === file.path);
    const edit = new vscode.WorkspaceEdit();
    edit.createFile(file, { ignoreIfExists: true }); // the user may have deleted it meanwhile
    await vscode.workspace.applyEdit(edit);
    const document = await vscode.workspace.openTextDocument(file);
    const viewColumn = tab?.group.viewColumn ?? vscode.ViewColumn.Active;
    const editor = await vscode.window.showTextDocument(document, { preview: false, viewColumn });
    const whole = new vscode.Range(0, 0, document.lineCount, 0);
    const replaced = await editor.edit((change) => change.replace(whole, proposal.text));
    // A formatter would change the text that was validated. VS Code saves without one only what is in front.
    if (replaced) await vscode.commands.executeCommand("workbench.action.files.saveWithoutFormatting");
    if (!replaced || document.isDirty) {
      const state = replaced ? "The new kernel is in the editor, not on disk." : "It is as it was.";
      void explain(new Problem(`${file.fsPath} could not be written. ${state}`, []));
      return;
    }
    await this.#forget(proposal);
    const isMine = ({ input }: vscode.Tab): boolean => input instanceof vscode.TabInputText && input.uri.path === file.path;
    if (tab === undefined) await vscode.window.tabGroups.close(allTabs().filter(isMine));
    await show(before);
  }

  async #discard(uri: vscode.Uri | undefined): Promise<void> {
    const proposal = this.#find(uri);
    if (proposal === undefined) return;
    const before = this.#last;
    await this.#forget(proposal);
    await show(before);
  }

  async #forget(proposal: Proposal): Promise<void> {
    const tabs = this.#tabs(proposal);
    this.#open.delete(vscode.Uri.parse(proposal.file).path);
    this.#show();
    await vscode.window.tabGroups.close(tabs);
  }

  /** The one that a button or a lens means, or the one that is in front. */
  #find(uri: vscode.Uri | undefined): Proposal | undefined {
    const input = vscode.window.tabGroups.activeTabGroup.activeTab?.input;
    const shown = input instanceof vscode.TabInputTextDiff ? input.modified : undefined;
    const path = (uri?.scheme === SCHEME ? uri : shown)?.path;
    return path === undefined ? undefined : this.#open.get(path);
  }

  #tabs(proposal: Proposal): vscode.Tab[] {
    const { proposed } = sides(vscode.Uri.parse(proposal.file));
    const isReview = ({ input }: vscode.Tab): boolean =>
      input instanceof vscode.TabInputTextDiff && input.modified.toString() === proposed.toString();
    return allTabs().filter(isReview);
  }

  #show(): void {
    this.#decided.fire();
    const names = [...this.#open.values()].map(({ className }) => className);
    this.#item.text = `$(diff) New kernel: ${names.join(", ")}`;
    if (names.length > 0) this.#item.show();
    else this.#item.hide();
  }
}

function sides(file: vscode.Uri): { now: vscode.Uri; proposed: vscode.Uri } {
  return { now: file.with({ scheme: SCHEME, query: NOW }), proposed: file.with({ scheme: SCHEME, query: "" }) };
}

/** A kernel file to be compared: times and versions differ in every header, which is one line here. VS Code folds nothing in differences. */
function withFoldedHeader(text: string): string {
  return text.replace(/^# \/\/\/ kernel-lsp\r?\n(?:#.*\r?\n)*?# \/\/\/(?=\r?$)/m, "# /// kernel-lsp … ///");
}

function allTabs(): vscode.Tab[] {
  return vscode.window.tabGroups.all.flatMap((group) => group.tabs);
}

async function show(editor: vscode.TextEditor | undefined): Promise<void> {
  if (editor === undefined || editor.document.isClosed) return;
  const options = editor.viewColumn === undefined ? {} : { viewColumn: editor.viewColumn };
  await vscode.window.showTextDocument(editor.document, options);
}
