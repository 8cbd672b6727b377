// The language status item: what the server is doing, with the one action that fits.

import { isDeepStrictEqual } from "node:util";
import * as vscode from "vscode";
import type { Problem } from "./problems";
import type { Status } from "./protocol";

export interface StatusView {
  state: Status["state"] | "starting";
  text: string;
}

type Look = { detail: string; severity: vscode.LanguageStatusSeverity; command: vscode.Command };

const { Information, Warning } = vscode.LanguageStatusSeverity;
const SETTINGS = {
  title: "Settings",
  command: "kernelLsp.openSetting",
  arguments: ["kernelLsp.interpreter"],
};
const TRUST = { title: "Manage Trust", command: "workbench.trust.manage" };
const VERBS = { generate: "Generating", validate: "Validating", restore: "Restoring the faster kernel of" };
const LOGS = { title: "Show Logs", command: "kernelLsp.showLogs" };

export class StatusItem {
  view: StatusView = { state: "starting", text: "Starting" };
  #look: Look | undefined;
  readonly #item: vscode.LanguageStatusItem;

  constructor(context: vscode.ExtensionContext) {
    this.#item = vscode.languages.createLanguageStatusItem("kernelLsp.status", { language: "python" });
    this.#item.name = "Kernel LSP";
    context.subscriptions.push(this.#item);
    this.starting();
  }

  starting(): void {
    this.#show({ state: "starting", text: "Starting" }, { detail: "", severity: Information, command: LOGS });
  }

  failed(problem: Problem): void {
    const [command = "kernelLsp.showLogs"] = problem.actions;
    const retry = command === "kernelLsp.restartServer";
    this.#show(
      { state: "error", text: "Not running" },
      {
        detail: problem.message,
        severity: vscode.LanguageStatusSeverity.Error,
        command: retry ? { title: "Try Again", command } : { title: "What to do", command: "kernelLsp.explainProblem" },
      },
    );
  }

  update(status: Status): void {
    const first = status.jobs[0];
    const more = status.jobs.length > 1 ? ` and ${status.jobs.length - 1} more` : "";
    switch (status.state) {
      case "busy":
        // Its stages are in the status bar. VS Code has this item's icon wiggle whenever its text changes.
        this.#show(
          { state: "busy", text: `${first === undefined ? "" : VERBS[first.kind]} ${first?.className ?? ""}${more}` },
          { detail: "", severity: Information, command: { title: "Cancel", command: "kernelLsp.cancelAtCursor" } },
        );
        break;
      case "paused":
        this.#show(
          { state: "paused", text: "Background work is paused" },
          {
            detail: "Kernels are not checked when you save",
            severity: Information,
            command: { title: "Resume", command: "kernelLsp.resumeBackground" },
          },
        );
        break;
      case "error":
        this.#show({ state: "error", text: status.message }, { detail: "", severity: Warning, command: SETTINGS });
        break;
      case "idle":
        if (!vscode.workspace.isTrusted) {
          const text = "This folder is not trusted: nothing of it is run";
          this.#show({ state: "idle", text }, { detail: "", severity: Information, command: TRUST });
          break;
        }
        this.#show(
          { state: "idle", text: status.message || "Ready" },
          {
            detail: "",
            severity: Information,
            command: { title: "Pause", command: "kernelLsp.pauseBackground" },
          },
        );
    }
  }

  #show(view: StatusView, look: Look): void {
    if (isDeepStrictEqual([view, look], [this.view, this.#look])) return;
    this.view = view;
    this.#look = look;
    this.#item.text = `Kernel LSP: ${view.text}`;
    this.#item.detail = look.detail;
    this.#item.severity = look.severity;
    this.#item.command = look.command;
    this.#item.busy = view.state === "starting"; // not longer than that: see progress.ts
    void vscode.commands.executeCommand("setContext", "kernelLsp.state", view.state);
  }
}
