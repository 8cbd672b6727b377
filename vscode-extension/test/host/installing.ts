// The first start on a machine: the extension makes its server's environment. Here the package index is out of reach
// at first (the harness says so in the environment of VS Code).

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";
import { api, open, until } from "./editor";
import { say, type Test } from "./runner";
import { answer, SETTINGS, shown } from "./window";

const BUTTONS = ["Try Again", "Open Settings", "Show Log"];

export const installing: Test[] = [
  {
    name: "where the package index cannot be reached, the status says so and what to do",
    body: async () => {
      assert.ok(process.env.PIP_INDEX_URL, "the harness was to make the index unreachable");
      await open("rms_norm.py");
      const found = await api();
      assert.deepEqual(found.status(), { state: "error", text: "Not running" });
      assert.equal(found.client(), undefined);
      await vscode.commands.executeCommand("kernelLsp.printDebugInformation");
      const text = await until("debug information", () => {
        const document = vscode.window.activeTextEditor?.document;
        return document?.languageId === "json" && document.getText();
      });
      assert.match(JSON.parse(text).problem, /could not install its server, because .* cannot be reached\. Try again when/);
    },
  },
  {
    name: "its message has Open Settings, which shows the setting that it names",
    body: async () => {
      void vscode.commands.executeCommand("kernelLsp.explainProblem"); // what the status offers; it ends with the message
      await answer("index cannot be reached", BUTTONS, "Open Settings");
      await shown(SETTINGS, "Import Strategy");
      await vscode.commands.executeCommand("workbench.action.closeActiveEditor");
    },
  },
  {
    name: "once it can, Try Again installs the server and starts it",
    body: async () => {
      void vscode.commands.executeCommand("kernelLsp.restartServer");
      await answer("index cannot be reached", BUTTONS, "Show Log");
      void vscode.commands.executeCommand("kernelLsp.explainProblem");
      delete process.env.PIP_INDEX_URL;
      const began = Date.now();
      await answer("index cannot be reached", BUTTONS, "Try Again");
      const found = await api();
      await until("status: idle", () => found.status().state === "idle", 300);
      const impostor = join(process.env.PYTHONPATH ?? assert.fail("the harness was to set it"), "ran");
      assert.equal(existsSync(impostor), false, "something else was imported than what was installed");
      say(`  installed and started in ${((Date.now() - began) / 1000).toFixed(1)} s`);
    },
  },
];
