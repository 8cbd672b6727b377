// The main job: from a class to a kernel that is validated, and shown where the class stands.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";
import { actions, api, codes, hover, JOB, lenses, open, ours, place, replace, until, WORKSPACE } from "./editor";
import type { Test } from "./runner";

const KERNEL = join(WORKSPACE, "kernels", "rms_norm_triton.py");

async function actionTitled(editor: vscode.TextEditor, title: string): Promise<vscode.CodeAction> {
  const found = await actions(editor.document.uri, place(editor, "RMSNorm"));
  const action = found.find((candidate) => candidate.title === title);
  assert.ok(action, `no action ${title} among: ${found.map((candidate) => candidate.title).join(", ")}`);
  return action;
}

export const generating: Test[] = [
  {
    name: "the class offers to generate, as an action and as a lens",
    body: async () => {
      const editor = await open("rms_norm.py");
      const action = await actionTitled(editor, "Generate Triton kernel for RMSNorm");
      assert.equal(action.kind?.value, "refactor.rewrite");
      await until("the lens", async () => (await lenses(editor.document.uri))[0]?.startsWith("Generate Triton kernel") === true);
      assert.deepEqual(codes(editor.document.uri), []);
    },
  },
  {
    name: "Generate writes a validated kernel; status, lens, diagnostic and hover say so",
    body: async () => {
      const editor = await open("rms_norm.py");
      const { uri } = editor.document;
      const { command } = await actionTitled(editor, "Generate Triton kernel for RMSNorm");
      assert.ok(command);
      await vscode.commands.executeCommand(command.command, ...(command.arguments ?? []));
      const found = await api();
      await until("status: busy", () => found.status().state === "busy");
      assert.equal(found.status().text, "Generating RMSNorm");
      await until("the running lens", async () => (await lenses(uri)).includes("Cancel"));
      await until("kernel-valid", () => codes(uri).includes("kernel-valid"), JOB);
      assert.deepEqual(codes(uri), ["kernel-valid"]);
      const text = readFileSync(KERNEL, "utf8");
      assert.match(text, /^# \/\/\/ kernel-lsp/);
      assert.match(text, /class RMSNormTriton\(RMSNorm\)/);
      await until("lens: ✓", async () => (await lenses(uri))[0]?.startsWith("✓"));
      const table = await hover(uri, place(editor, "RMSNorm").start);
      assert.match(table, /RMSNormTriton/);
      assert.match(table, /torch 2\./);
      assert.match(table, /\[Report\]\(command:kernelLsp\.showReport\?/);
      await until("status: idle", () => found.status().state === "idle");
    },
  },
  {
    name: "the kernel is put to use by an edit that one undo takes back",
    body: async () => {
      const editor = await open("rms_norm.py");
      const before = editor.document.getText();
      const action = await actionTitled(editor, "Use RMSNormTriton in this file");
      assert.ok(action.edit);
      assert.ok(await vscode.workspace.applyEdit(action.edit));
      assert.match(editor.document.getText(), /^from kernels import rms_norm_triton/m);
      await vscode.commands.executeCommand("undo");
      assert.equal(editor.document.getText(), before);
      await editor.document.save();
    },
  },
  {
    name: "an edit makes it stale, a save has it validated again, and other maths puts its kernel out of date",
    body: async () => {
      const editor = await open("rms_norm.py");
      const { uri } = editor.document;
      await replace(editor, ") * self.weight", ") / self.weight");
      await until("kernel-stale", () => codes(uri).join() === "kernel-stale");
      await until("lens: stale", async () => (await lenses(uri))[0]?.includes("stale"));
      await editor.document.save();
      await until("kernel-outdated", () => codes(uri).join() === "kernel-outdated", JOB);
      assert.equal(ours(uri)[0]?.severity, vscode.DiagnosticSeverity.Warning);
      const outdated = "Kernel out of date · Regenerate";
      await until(`lens: ${outdated}`, async () => (await lenses(uri))[0] === outdated);
    },
  },
  {
    name: "back to what it was, it is valid again",
    body: async () => {
      const editor = await open("rms_norm.py");
      const { uri } = editor.document;
      await replace(editor, ") / self.weight", ") * self.weight");
      await editor.document.save();
      await until("kernel-valid", () => codes(uri).join() === "kernel-valid", JOB);
      assert.ok(existsSync(KERNEL));
    },
  },
];
