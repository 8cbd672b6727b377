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
  readonly #shown = new Map<string, Shown>();

  /** Shows a page of the server's; false for a document that is none. */
  async show(uri: vscode.Uri): Promise<boolean> {
    if (uri.scheme !== "file" || !uri.fsPath.endsWith(".html")) return false;
    const known = this.#shown.get(uri.fsPath);
    if (known !== undefined) {
      await load(known.panel, uri.fsPath);
      known.panel.reveal(undefined, true);
      return true;
    }
    const title = `Report: ${basename(uri.fsPath, ".html")}`;
    const column = { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true };
    const options = { enableScripts: false, enableForms: false, enableFindWidget: true, localResourceRoots: [] };
    const panel = vscode.window.createWebviewPanel("kernelLsp.report", title, column, options);
    await load(panel, uri.fsPath);
    // The folder: the file is replaced, not written into.
    const watcher = watch(dirname(uri.fsPath), (_, name) => {
      if (name === null || name === basename(uri.fsPath)) void load(panel, uri.fsPath);
    });
    watcher.on("error", () => watcher.close()); // the server removes the folder when it ends; the page stays
    this.#shown.set(uri.fsPath, { panel, watcher });
    panel.onDidDispose(() => {
      watcher.close();
      this.#shown.delete(uri.fsPath);
    });
    return true;
  }

  dispose(): void {
    for (const { panel } of this.#shown.values()) panel.dispose();
  }
}

async function load(panel: vscode.WebviewPanel, path: string): Promise<void> {
  let html: string;
  try {
    html = await readFile(path, "utf8");
  } catch {
    return; // removed with the server, or about to be there
  }
  if (html !== "" && html !== panel.webview.html) panel.webview.html = withPolicy(html);
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
