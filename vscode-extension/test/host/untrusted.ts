// A folder that the user does not trust: nothing of it is imported or run, whatever one asks for.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";
import { actions, api, debugInformation, lenses, open, pause, place, until, WORKSPACE } from "./editor";
import type { Test } from "./runner";
import { answer, shown } from "./window";

const IMPORTED = join(WORKSPACE, "imported"); // what the harness has the sample write when it is imported

export const untrusted: Test[] = [
  {
    name: "the server runs, knows that the folder is not trusted, and shows classes",
    body: async () => {
      assert.equal(vscode.workspace.isTrusted, false);
      const { document } = await open("rms_norm.py");
      assert.equal((await api()).status().state, "idle");
      assert.equal((await debugInformation()).trusted, false);
      await until("the lens", async () => (await lenses(document.uri)).length > 0);
    },
  },
  {
    name: "Generate is shown as not available, with the reason; asked for nevertheless it is refused",
    body: async () => {
      const editor = await open("rms_norm.py");
      const { document } = editor;
      const range = place(editor, "RMSNorm");
      const isGenerate = ({ title }: { title: string }): boolean => title.startsWith("Generate Triton kernel");
      const offered = (await actions(document.uri, range)).find(isGenerate);
      assert.equal(offered?.command, undefined);
      // VS Code leaves out what is not available where an extension asks, so the server is asked for the reason.
      const client = (await api()).client();
      assert.ok(client);
      const area = client.code2ProtocolConverter.asRange(range);
      const question = { textDocument: { uri: document.uri.toString() }, range: area, context: { diagnostics: [] } };
      const answer = await client.sendRequest<vscode.CodeAction[]>("textDocument/codeAction", question);
      assert.match(answer.find(isGenerate)?.disabled?.reason ?? "", /not trusted/);
      const argument = { uri: document.uri.toString(), className: "RMSNorm", version: document.version };
      const request = { command: "kernelLsp.generate", arguments: [argument] };
      await assert.rejects(client.sendRequest("workspace/executeCommand", request), /not trusted/);
    },
  },
  {
    name: "the message of what is refused has Manage Trust, which shows where the folder is trusted",
    body: async () => {
      const editor = await open("rms_norm.py");
      const at = place(editor, "class ").start;
      editor.selection = new vscode.Selection(at, at);
      void vscode.commands.executeCommand("kernelLsp.generateAtCursor"); // it ends with the message
      await answer("not trusted", ["Manage Trust", "Show Log"], "Manage Trust");
      await shown(".workspace-trust-editor", "Restricted Mode");
      await vscode.commands.executeCommand("workbench.action.closeActiveEditor");
    },
  },
  {
    name: "an interpreter that the folder's settings name is not taken, a setting that names no program is",
    body: async () => {
      const settings = vscode.workspace.getConfiguration("kernelLsp");
      assert.equal(settings.get("inlayHints"), true);
      assert.equal(settings.inspect("interpreter")?.workspaceValue, undefined);
      assert.equal(settings.get("interpreter"), "");
    },
  },
  {
    name: "nothing was imported, also after a save",
    body: async () => {
      const { document } = await open("rms_norm.py");
      await vscode.window.activeTextEditor?.edit((edit) => edit.insert(new vscode.Position(0, 0), "# \n"));
      assert.ok(await document.save());
      await pause(1500);
      assert.ok(!existsSync(IMPORTED));
      assert.deepEqual((await debugInformation()).workerPids, []);
    },
  },
];
