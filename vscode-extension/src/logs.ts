// The log channels: ours with the server's standard error, and the trace of the protocol.

import * as vscode from "vscode";

export interface Logs {
  main: vscode.LogOutputChannel;
  trace: vscode.LogOutputChannel;
}

export function createLogs(context: vscode.ExtensionContext): Logs {
  const logs = {
    main: vscode.window.createOutputChannel("Kernel LSP", { log: true }),
    trace: vscode.window.createOutputChannel("Kernel LSP Trace", { log: true }),
  };
  context.subscriptions.push(logs.main, logs.trace);
  return logs;
}
