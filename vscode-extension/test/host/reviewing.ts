// A new kernel where there is one already: shown as a difference, and written only when the user accepts it.

import assert from "node:assert/strict";
import { appendFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";
import { open, place, until, WORKSPACE } from "./editor";
import type { Test } from "./runner";

const KERNEL = join(WORKSPACE, "kernels", "rms_norm_triton.py");
const MINE = "\n# A line of the user's.\n";

function differences(): vscode.Tab[] {
  const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
  return tabs.filter(({ input }) => input instanceof vscode.TabInputTextDiff);
}

/** Has a kernel generated where the user has edited the one there is, and waits for the difference. */
async function proposed(): Promise<vscode.Tab> {
  const editor = await open("rms_norm.py");
  const at = place(editor, "RMSNorm").start;
  editor.selection = new vscode.Selection(at, at);
  await vscode.commands.executeCommand("kernelLsp.generateAtCursor");
  return await until("a difference", () => differences()[0], 60);
}

async function decide(command: string, tab: vscode.Tab): Promise<void> {
  assert.ok(tab.input instanceof vscode.TabInputTextDiff);
  await vscode.commands.executeCommand(command, tab.input.modified);
  await until("the difference to close", () => differences().length === 0);
}

export const reviewing: Test[] = [
  {
    name: "a kernel that the user has edited stays when the new one is turned down",
    body: async () => {
      appendFileSync(KERNEL, MINE);
      await decide("kernelLsp.discardKernel", await proposed());
      assert.ok(readFileSync(KERNEL, "utf8").endsWith(MINE));
    },
  },
  {
    name: "it is replaced when the new one is accepted",
    body: async () => {
      await decide("kernelLsp.acceptKernel", await proposed());
      const text = readFileSync(KERNEL, "utf8");
      assert.ok(!text.includes(MINE.trim()));
      assert.match(text, /class RMSNormTriton\(RMSNorm\)/);
      await vscode.commands.executeCommand("workbench.action.closeAllEditors");
    },
  },
];
