// The interpreter that the user selects is the one that runs the user's code.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import * as vscode from "vscode";
import { api, codes, JOB, open, ours, place, until, WORKSPACE } from "./editor";
import type { Test } from "./runner";
import { answer, pick } from "./window";

const TORCH = process.env.TEST_PYTHON ?? "";
const FOLDER = join(dirname(WORKSPACE), "interpreters");

/** A Python of the user's own: the one with torch, with something done before it starts. */
function createPython(name: string, lines: string): string {
  const path = join(FOLDER, name);
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(path, `#!/bin/sh\n${lines}\n`);
  chmodSync(path, 0o755);
  return path;
}

async function generate(name: string): Promise<vscode.Uri> {
  const editor = await open(name);
  const at = place(editor, "class ").start;
  editor.selection = new vscode.Selection(at, at);
  await vscode.commands.executeCommand("kernelLsp.generateAtCursor");
  return editor.document.uri;
}

export const interpreting: Test[] = [
  {
    name: "one without torch: the class says which, and why",
    body: async () => {
      execFileSync(TORCH, ["-m", "venv", "--without-pip", join(FOLDER, "without-torch")]);
      const python = join(FOLDER, "without-torch", "bin", "python");
      await vscode.commands.executeCommand("pythonStub.select", python);
      const uri = await generate("softmax.py");
      await until("cannot-validate", () => codes(uri).join() === "cannot-validate", JOB);
      const message = ours(uri)[0]?.message ?? "";
      assert.match(message, /torch/);
      assert.ok(message.includes(python), message);
    },
  },
  {
    name: "Select Interpreter in its message has the Python extension ask for another",
    body: async () => {
      await answer("has no torch", ["Select Interpreter", "Show Log"], "Select Interpreter");
      await pick(TORCH);
      await until("the selection", async () => (await vscode.commands.executeCommand("pythonStub.selected")) === TORCH);
    },
  },
  {
    name: "another one with torch: it is used from then on",
    body: async () => {
      const used = join(FOLDER, "used");
      await vscode.commands.executeCommand("pythonStub.select", createPython("other", `: >'${used}'; exec '${TORCH}' "$@"`));
      const uri = await generate("softmax.py");
      await until("kernel-valid", () => codes(uri).join() === "kernel-valid" && existsSync(used), JOB);
    },
  },
  {
    name: "the setting kernelLsp.interpreter is stronger than the selection",
    body: async () => {
      const used = join(FOLDER, "from-setting");
      const python = createPython("set", `: >'${used}'; exec '${TORCH}' "$@"`);
      const settings = vscode.workspace.getConfiguration("kernelLsp");
      await settings.update("interpreter", python, vscode.ConfigurationTarget.Workspace);
      await open("softmax.py");
      await vscode.commands.executeCommand("kernelLsp.validateAtCursor");
      await until("the interpreter", () => existsSync(used), JOB);
      await until("status: idle", async () => (await api()).status().state === "idle", JOB);
      await settings.update("interpreter", undefined, vscode.ConfigurationTarget.Workspace);
      await vscode.commands.executeCommand("pythonStub.select", TORCH);
      rmSync(FOLDER, { recursive: true });
    },
  },
];
