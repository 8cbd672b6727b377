import assert from "node:assert/strict";
import * as vscode from "vscode";
import { debugInformation, open, pause, place, until } from "./editor";
import type { Test } from "./runner";

function panels(): string[] {
  const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
  return tabs.filter(({ input }) => input instanceof vscode.TabInputWebview).map(({ label }) => label);
}

export const reporting: Test[] = [
  {
    name: "the report opens beside the code, once",
    body: async () => {
      const editor = await open("rms_norm.py");
      const at = place(editor, "RMSNorm").start;
      editor.selection = new vscode.Selection(at, at);
      for (let times = 0; times < 2; times += 1) {
        await vscode.commands.executeCommand("kernelLsp.showReportAtCursor");
        await until("the panel", () => panels().length > 0);
        await pause(500); // another one would be heard of a little later
        assert.deepEqual(panels(), ["Report: RMSNorm"]);
      }
      assert.equal(vscode.window.activeTextEditor?.document.fileName, editor.document.fileName);
      await vscode.commands.executeCommand("workbench.action.closeEditorsInOtherGroups");
    },
  },
  {
    name: "the kernel opens beside the code",
    body: async () => {
      await open("rms_norm.py");
      await vscode.commands.executeCommand("kernelLsp.openKernelBeside");
      const names = (): string[] => vscode.window.visibleTextEditors.map(({ document }) => document.fileName);
      await until("the kernel", () => names().some((name) => name.endsWith("rms_norm_triton.py")));
      await vscode.commands.executeCommand("workbench.action.closeEditorsInOtherGroups");
    },
  },
  {
    name: "debug information opens as a document, with nothing of the user's code",
    body: async () => {
      const { pid } = await debugInformation();
      await vscode.commands.executeCommand("kernelLsp.printDebugInformation");
      const text = await until("the document", () => {
        const shown = vscode.window.activeTextEditor?.document;
        return shown?.languageId === "json" && shown.getText();
      });
      assert.equal(JSON.parse(text).server.pid, pid);
      assert.ok(!text.includes("forward"));
      await vscode.commands.executeCommand("workbench.action.closeActiveEditor");
    },
  },
];
