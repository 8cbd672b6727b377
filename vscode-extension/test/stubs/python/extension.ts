// Stands in for the Python extension, which is in no registry that tests can reach: the part of its API that tells which
// interpreter is selected, and a command for tests that selects another one.

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
  context.subscriptions.push(changed, select);
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
