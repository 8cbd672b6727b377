// The buttons of messages, pressed in the window: what each does. Others are where their message comes from: Select Interpreter
// in interpreting.ts, Try Again in installing.ts, Manage Trust in untrusted.ts, and those of a new kernel in reviewing.ts.

import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";
import { codes, JOB, open, place, until, WORKSPACE } from "./editor";
import type { Test } from "./runner";
import { answer, pick, SETTINGS, shown } from "./window";

const BARE = `from torch import nn


class Bare(nn.Module):
    def forward(self, x):
        return x * 2
`;
const BEGUN = join(WORKSPACE, "begun"); // the class is imported for the first time

/** Its first import takes as long as a test needs to save another version of it. */
const SLOW = `import pathlib
import time

import torch
from torch import nn


class Slow(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2


def get_inputs():
    return [torch.randn(8, 64)]


begun = pathlib.Path(${JSON.stringify(BEGUN)})
if not begun.exists():
    begun.touch()
    time.sleep(6)
`;

/** A class in a file of its own, with the cursor in it. */
async function write(name: string, source: string): Promise<vscode.TextEditor> {
  writeFileSync(join(WORKSPACE, name), source);
  return await openAtClass(name);
}

async function openAtClass(name: string): Promise<vscode.TextEditor> {
  const editor = await open(name);
  const at = place(editor, "class ").start;
  editor.selection = new vscode.Selection(at, at);
  return editor;
}

async function remove(...names: string[]): Promise<void> {
  await vscode.commands.executeCommand("workbench.action.revertAndCloseActiveEditor");
  for (const name of names) rmSync(join(WORKSPACE, name), { recursive: true, force: true });
}

async function generate(): Promise<void> {
  await vscode.commands.executeCommand("kernelLsp.generateAtCursor");
}

function isLogShown(): boolean {
  return vscode.window.visibleTextEditors.some(({ document: { uri } }) => uri.scheme === "output" && uri.path.endsWith("Kernel LSP.log"));
}

export const pressing: Test[] = [
  {
    name: "Show Log shows the log",
    body: async () => {
      await write("bare.py", BARE);
      assert.ok(!isLogShown());
      await generate();
      await answer("No example inputs for Bare", ["Add Example Inputs", "Show Log"], "Show Log");
      // Not what is in it: this VS Code, whose native parts are not built, keeps no logs.
      await until("the log", isLogShown);
      await vscode.commands.executeCommand("workbench.action.closePanel");
    },
  },
  {
    name: "Add Example Inputs puts them into the file, where the user sees them",
    body: async () => {
      const { document } = await openAtClass("bare.py");
      await generate();
      await answer("No example inputs for Bare", ["Add Example Inputs", "Show Log"], "Add Example Inputs");
      await until("example inputs", () => document.getText().includes("def get_inputs"));
      assert.ok(document.getText().startsWith(BARE));
      assert.equal(readFileSync(document.fileName, "utf8"), BARE, "it is the user's to save");
      await until("the file in front", () => vscode.window.activeTextEditor?.document === document);
      await remove("bare.py");
    },
  },
  {
    name: "Open Settings shows the setting that the message names; Select GPU sets the device",
    body: async () => {
      const settings = (): vscode.WorkspaceConfiguration => vscode.workspace.getConfiguration("kernelLsp");
      const buttons = ["Select GPU", "Open Settings", "Show Log"];
      await settings().update("device", "cuda:77", vscode.ConfigurationTarget.Workspace);
      try {
        await openAtClass("softmax.py");
        await generate();
        await answer("There is no device cuda:77", buttons, "Open Settings");
        await shown(SETTINGS, "Where kernels are validated");
        await vscode.commands.executeCommand("workbench.action.closeActiveEditor");

        await openAtClass("softmax.py");
        await generate();
        await answer("There is no device cuda:77", buttons, "Select GPU");
        await pick("No GPU");
        await until("the device", () => settings().get("device") === "interpreter");
      } finally {
        await settings().update("device", undefined, vscode.ConfigurationTarget.Workspace);
      }
    },
  },
  {
    name: "Generate Again generates the class as it is now",
    body: async () => {
      const { document } = await write("slow.py", SLOW);
      await generate();
      await until("the import of the class", () => existsSync(BEGUN), JOB);
      writeFileSync(document.fileName, SLOW.replace("* 2", "* 4")); // as another program would
      await answer("Slow, or something it uses, changed while", ["Generate Again", "Show Log"], "Generate Again");
      const kernel = join(WORKSPACE, "kernels", "slow_triton.py");
      await until("kernel-valid", () => codes(document.uri).join() === "kernel-valid" && existsSync(kernel), JOB);
      await remove("slow.py", "begun", "kernels/slow_triton.py");
    },
  },
];
