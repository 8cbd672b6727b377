// Settings reach the server when they change, without a restart.

import assert from "node:assert/strict";
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";
import { codes, debugInformation, JOB, open, pause, place, replace, until, WORKSPACE } from "./editor";
import type { Test } from "./runner";

async function set(name: string, value: unknown): Promise<void> {
  await vscode.workspace.getConfiguration("kernelLsp").update(name, value, vscode.ConfigurationTarget.Workspace);
  await pause(300); // VS Code tells the server, which then asks for them
}

async function hints(editor: vscode.TextEditor): Promise<vscode.InlayHint[]> {
  const whole = new vscode.Range(0, 0, editor.document.lineCount, 0);
  return await vscode.commands.executeCommand("vscode.executeInlayHintProvider", editor.document.uri, whole);
}

export const settings: Test[] = [
  {
    name: "inlay hints: off, on, off",
    body: async () => {
      const editor = await open("rms_norm.py");
      assert.deepEqual(await hints(editor), []);
      await set("inlayHints", true);
      await until("a hint", async () => (await hints(editor)).length === 1);
      await set("inlayHints", undefined);
      await until("no hint", async () => (await hints(editor)).length === 0);
    },
  },
  {
    name: "validateOnSave off: a save leaves the kernel stale",
    body: async () => {
      const { pid } = await debugInformation();
      const editor = await open("rms_norm.py");
      const { uri } = editor.document;
      await set("validateOnSave", false);
      await replace(editor, "self.eps) *", "self.eps) * 1.5 *");
      await editor.document.save();
      await pause(1500);
      assert.deepEqual(codes(uri), ["kernel-stale"]);
      await set("validateOnSave", undefined);
      await replace(editor, "self.eps) * 1.5 *", "self.eps) *");
      await editor.document.save();
      await until("kernel-valid", () => codes(uri).join() === "kernel-valid", JOB);
      assert.equal((await debugInformation()).pid, pid);
    },
  },
  {
    name: "kernelFolder: the next kernel goes there",
    body: async () => {
      await set("kernelFolder", "fast");
      const editor = await open("softmax.py");
      const at = place(editor, "class ").start;
      editor.selection = new vscode.Selection(at, at);
      await vscode.commands.executeCommand("kernelLsp.generateAtCursor");
      await until("the file", () => existsSync(join(WORKSPACE, "fast", "temperature_softmax_triton.py")), JOB);
      await until("kernel-valid", () => codes(editor.document.uri).join() === "kernel-valid");
      await set("kernelFolder", undefined);
      await until("no kernel", async () => codes(editor.document.uri).length === 0);
      rmSync(join(WORKSPACE, "fast"), { recursive: true });
    },
  },
];
