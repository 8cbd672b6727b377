// Stands in for the Python extension, which is in no registry that tests can reach: the part of its API that tells which
// interpreter is selected, its command that lets the user select one, and commands for tests that select and tell one.

import * as vscode from "vscode";

interface Path {
  id: string;
  path: string;
}

const path = (python: string): Path => ({ id: python, path: python });

export function activate(context: vscode.ExtensionContext): unknown {
  let selected = path(process.env.TEST_PYTHON ?? "python3");
  const changed = new vscode.EventEmitter<Path & { resource: undefined }>();
  const select = vscode.commands.registerCommand("pythonStub.select", (python: string) => {
    selected = path(python);
    changed.fire({ ...selected, resource: undefined });
  });
  const ask = vscode.commands.registerCommand("python.setInterpreter", async () => {
    const chosen = await vscode.window.showQuickPick([process.env.TEST_PYTHON ?? "python3"], { placeHolder: "Select Interpreter" });
    if (chosen !== undefined) await vscode.commands.executeCommand("pythonStub.select", chosen);
  });
  const tell = vscode.commands.registerCommand("pythonStub.selected", () => selected.path);
  context.subscriptions.push(changed, select, ask, tell);
  return {
    environments: {
      onDidChangeActiveEnvironmentPath: changed.event,
      getActiveEnvironmentPath: () => selected,
      resolveEnvironment: async (environment: Path | string) => {
        const python = typeof environment === "string" ? environment : environment.path;
        return { ...path(python), executable: { uri: vscode.Uri.file(python) } };
      },
    },
  };
}
