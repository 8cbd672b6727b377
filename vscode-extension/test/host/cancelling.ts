import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";
import { api, codes, JOB, lenses, open, pause, place, replace, until, WORKSPACE } from "./editor";
import type { Test } from "./runner";

const CANCEL_MILLISECONDS = 1500;

export const cancelling: Test[] = [
  {
    name: "Cancel ends a generation within a second and a half, and nothing is written",
    body: async () => {
      const editor = await open("softmax.py");
      const { uri } = editor.document;
      const found = await api();
      const at = place(editor, "class ").start;
      editor.selection = new vscode.Selection(at, at);
      await vscode.commands.executeCommand("kernelLsp.generateAtCursor");
      await until("status: busy", () => found.status().state === "busy");
      const began = Date.now();
      await vscode.commands.executeCommand("kernelLsp.cancelAtCursor");
      await until("status: idle", () => found.status().state === "idle");
      const took = Date.now() - began;
      assert.ok(took < CANCEL_MILLISECONDS, `${took} ms`);
      await until("the first lens", async () => (await lenses(uri))[0]?.startsWith("Generate Triton kernel") === true);
      assert.deepEqual(codes(uri), []);
      assert.ok(!existsSync(join(WORKSPACE, "kernels", "temperature_softmax_triton.py")));
    },
  },
  {
    name: "while paused a save is not validated, and what one asks for still is",
    body: async () => {
      const editor = await open("rms_norm.py");
      const { uri } = editor.document;
      const found = await api();
      await vscode.commands.executeCommand("kernelLsp.pauseBackground");
      await until("status: paused", () => found.status().state === "paused");
      await replace(editor, "self.eps) *", "self.eps) * 1.0 *");
      await editor.document.save();
      await pause(1000);
      assert.equal(found.status().state, "paused");
      assert.deepEqual(codes(uri), ["kernel-stale"]);
      await vscode.commands.executeCommand("kernelLsp.validateAtCursor");
      await until("kernel-valid", () => codes(uri).join() === "kernel-valid", JOB);
      await vscode.commands.executeCommand("kernelLsp.resumeBackground");
      await until("status: idle", () => found.status().state === "idle");
      await replace(editor, "self.eps) * 1.0 *", "self.eps) *");
      await until("kernel-stale", () => codes(uri).join() === "kernel-stale"); // else it is still valid from before
      await editor.document.save();
      await until("kernel-valid again", () => codes(uri).join() === "kernel-valid" && found.status().state === "idle", JOB);
    },
  },
];
