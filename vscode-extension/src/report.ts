// The report that the server wrote, in a panel beside the code; read again whenever the server writes it again.

import { createHash } from "node:crypto";
import { type FSWatcher, watch } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename, dirname } from "node:path";
import * as vscode from "vscode";

interface Shown {
  panel: vscode.WebviewPanel;
  watcher: FSWatcher;
}

export class Reports {
  readonly #shown = new Map<string, Shown>(); // by the name of the page: a server that is started again writes elsewhere

  /** Shows a page of the server's; false for a document that is none. */
  async show(uri: vscode.Uri): Promise<boolean> {
    if (uri.scheme !== "file" || !uri.fsPath.endsWith(".html")) return false;
    const name = basename(uri.fsPath, ".html");
    const known = this.#shown.get(name);
    known?.watcher.close();
    const panel = known?.panel ?? this.#open(name);
    this.#shown.set(name, { panel, watcher: watchPage(uri.fsPath, () => void this.#load(name, uri.fsPath)) });
    await this.#load(name, uri.fsPath);
    if (known !== undefined) panel.reveal(undefined, true);
    return true;
  }

  dispose(): void {
    for (const { panel } of [...this.#shown.values()]) panel.dispose();
  }

  #open(name: string): vscode.WebviewPanel {
    const column = { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true };
    const options = { enableScripts: false, enableForms: false, enableFindWidget: true, localResourceRoots: [] };
    const panel = vscode.window.createWebviewPanel("kernelLsp.report", `Report: ${name}`, column, options);
    panel.onDidDispose(() => {
      this.#shown.get(name)?.watcher.close();
      this.#shown.delete(name);
    });
    return panel;
  }

  async #load(name: string, path: string): Promise<void> {
    const html = await readFile(path, "utf8").catch(() => ""); // removed with the server: the page stays
    const panel = this.#shown.get(name)?.panel; // it may have been closed meanwhile
    const page = withPolicy(html);
    if (html !== "" && panel !== undefined && page !== panel.webview.html) panel.webview.html = page;
  }
}

/** Watches the folder: the file is replaced, not written into. */
function watchPage(path: string, changed: () => void): FSWatcher {
  const watcher = watch(dirname(path), (_, name) => {
    if (name === null || name === basename(path)) changed();
  });
  watcher.on("error", () => watcher.close());
  return watcher;
}

/** The page allows itself its own style alone. Ours says the same of it, whatever the file holds. */
export function withPolicy(html: string): string {
  const styles = [...html.matchAll(/<style>([\s\S]*?)<\/style>/g)].map(([, text = ""]) => sha256(text));
  const policy = `default-src 'none'; style-src ${styles.join(" ") || "'none'"}`;
  const meta = `<meta http-equiv="Content-Security-Policy" content="${policy}">`;
  return html.replace(/<head>/i, (head) => `${head}${meta}`);
}

function sha256(text: string): string {
  return `'sha256-${createHash("sha256").update(text, "utf8").digest("base64")}'`;
}
