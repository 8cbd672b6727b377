// What the server is at, in the status bar. Not VS Code's own progress: the wheel that turns beside it has the whole
// window drawn twenty times a second, and where no GPU draws it a typed character is seen a frame later.

import * as vscode from "vscode";
import type { ProgressToken, WorkDoneProgressBegin, WorkDoneProgressEnd, WorkDoneProgressReport } from "vscode-languageclient";

export type Reported = WorkDoneProgressBegin | WorkDoneProgressReport | WorkDoneProgressEnd;

export class Progress {
  readonly #item = vscode.window.createStatusBarItem("kernelLsp.progress", vscode.StatusBarAlignment.Left, -100);
  /** What is under way: its title, and what was last heard of it. */
  readonly #running = new Map<ProgressToken, { title: string; message: string }>();

  constructor() {
    this.#item.name = "Kernel LSP Progress";
  }

  report(token: ProgressToken, reported: Reported): void {
    const known = this.#running.get(token);
    if (reported.kind === "begin") this.#running.set(token, { title: reported.title, message: reported.message ?? "" });
    else if (reported.kind === "end") this.#running.delete(token);
    else if (known !== undefined) known.message = reported.message ?? known.message;
    this.#show();
  }

  /** Nothing is under way: the server has ended. */
  clear(): void {
    this.#running.clear();
    this.#show();
  }

  dispose(): void {
    this.#item.dispose();
  }

  #show(): void {
    const [first] = this.#running.values();
    if (first === undefined) {
      this.#item.hide();
      return;
    }
    const more = this.#running.size > 1 ? ` and ${this.#running.size - 1} more` : "";
    this.#item.text = `$(sync) ${[first.title, first.message].filter(Boolean).join(": ")}${more}`;
    this.#item.show();
  }
}
