// A new kernel where there is one already: offered above its class, and written only when the user says so.

import assert from "node:assert/strict";
import { appendFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";
import { JOB, lenses, open, place, until, WORKSPACE } from "./editor";
import type { Test } from "./runner";

const KERNEL = join(WORKSPACE, "kernels", "rms_norm_triton.py");
const MINE = "\n# A line of the user's.\n";
const OFFER = ["New kernel: Replace", "Keep", "Compare"];

function tabs(): vscode.Tab[] {
  return vscode.window.tabGroups.all.flatMap((group) => group.tabs);
}

function difference(): vscode.TabInputTextDiff | undefined {
  return tabs().find(({ input }) => input instanceof vscode.TabInputTextDiff)?.input as vscode.TabInputTextDiff | undefined;
}

/** Has a kernel generated where the user has edited the one there is, and waits for the offer. The cursor is in the class. */
async function offered(): Promise<vscode.TextEditor> {
  const editor = await open("rms_norm.py");
  const at = place(editor, "RMSNorm").start;
  editor.selection = new vscode.Selection(at, at);
  const before = tabs().length;
  await vscode.commands.executeCommand("kernelLsp.generateAtCursor");
  await until("the offer", async () => (await lenses(editor.document.uri)).join().includes(OFFER.join()), JOB);
  assert.equal(tabs().length, before, "something opened by itself");
  return editor;
}

/** What a press on a part of the offer does. */
async function press(editor: vscode.TextEditor, title: string): Promise<void> {
  const { uri } = editor.document;
  const found = await vscode.commands.executeCommand<vscode.CodeLens[]>("vscode.executeCodeLensProvider", uri, 100);
  const command = found.find((lens) => lens.command?.title === title)?.command;
  assert.ok(command, `no lens ${title}`);
  await vscode.commands.executeCommand(command.command, ...(command.arguments ?? []));
}

/** The user is where they were: the same file, the same place, no other tab. */
function assertWhereTheyWere(editor: vscode.TextEditor, selection: vscode.Selection): void {
  const active = vscode.window.activeTextEditor;
  assert.equal(active?.document.fileName, editor.document.fileName);
  assert.ok(active.selection.isEqual(selection), "the cursor moved");
  assert.ok(!tabs().some(({ input }) => input instanceof vscode.TabInputText && input.uri.path === KERNEL), "the kernel's tab stays");
}

async function noOffer(editor: vscode.TextEditor): Promise<void> {
  await until("the end of the offer", async () => !(await lenses(editor.document.uri)).includes("Keep"));
}

export const reviewing: Test[] = [
  {
    name: "a kernel that the user has edited stays when the new one is turned down",
    body: async () => {
      appendFileSync(KERNEL, MINE);
      const editor = await offered();
      const { selection } = editor;
      await press(editor, "Keep");
      await noOffer(editor);
      assert.ok(readFileSync(KERNEL, "utf8").endsWith(MINE));
      assertWhereTheyWere(editor, selection);
    },
  },
  {
    name: "Compare shows both without their headers, in front, where the buttons are",
    body: async () => {
      const editor = await offered();
      const { selection } = editor;
      await press(editor, "Compare");
      const shown = await until("the difference", difference);
      const isInFront = (): boolean => vscode.window.activeTextEditor?.document.uri.toString() === shown.modified.toString();
      await until("the difference in front", isInFront);
      for (const uri of [shown.original, shown.modified]) {
        const text = (await vscode.workspace.openTextDocument(uri)).getText();
        assert.match(text, /^# \/\/\/ kernel-lsp … \/\/\/\n/);
        assert.match(text, /class RMSNormTriton\(RMSNorm\)/);
        assert.equal(text.endsWith(MINE), uri === shown.original);
      }
      await vscode.commands.executeCommand("kernelLsp.discardKernel"); // the button means what is in front
      await until("the difference to close", () => difference() === undefined);
      assert.ok(readFileSync(KERNEL, "utf8").endsWith(MINE));
      assertWhereTheyWere(editor, selection);
    },
  },
  {
    name: "it is replaced when the new one is accepted, and the user stays where they were",
    body: async () => {
      const editor = await offered();
      const { selection } = editor;
      await press(editor, "Compare");
      await until("the difference", difference);
      await vscode.commands.executeCommand("kernelLsp.acceptKernel");
      await until("the difference to close", () => difference() === undefined);
      const text = readFileSync(KERNEL, "utf8");
      assert.ok(!text.includes(MINE.trim()));
      assert.match(text, /^# \/\/\/ kernel-lsp\n# source/);
      assert.match(text, /class RMSNormTriton\(RMSNorm\)/);
      assertWhereTheyWere(editor, selection);
      await noOffer(editor);
    },
  },
  {
    name: "Replace above the class does the same, and one undo in the kernel's file takes it back",
    body: async () => {
      appendFileSync(KERNEL, MINE);
      const editor = await offered();
      const { selection } = editor;
      await press(editor, "New kernel: Replace");
      assert.ok(!readFileSync(KERNEL, "utf8").includes(MINE.trim()));
      assertWhereTheyWere(editor, selection);
      const kernel = await open(join("kernels", "rms_norm_triton.py"));
      await vscode.commands.executeCommand("undo");
      assert.ok(kernel.document.getText().endsWith(MINE), "an undo does not bring the user's line back");
      await vscode.commands.executeCommand("redo");
      await kernel.document.save();
      await vscode.commands.executeCommand("workbench.action.closeAllEditors");
    },
  },
];
