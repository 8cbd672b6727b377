// Select GPU: where kernels are validated, from what the server's worker finds.

import * as vscode from "vscode";
import { setting } from "./configuration";
import { type Device, SECTION } from "./protocol";
import type { Session } from "./session";

export async function selectGpu(session: Session): Promise<void> {
  const resource = vscode.window.activeTextEditor?.document.uri ?? vscode.workspace.workspaceFolders?.[0]?.uri;
  const title = "Looking for GPUs";
  const devices = await vscode.window.withProgress({ location: vscode.ProgressLocation.Window, title }, () =>
    session.execute<Device[]>("kernelLsp.devices", { uri: resource?.toString() ?? "" }),
  );
  const now = setting("device", "auto", resource);
  const items = [
    { label: "Automatic", description: "auto", detail: "A GPU where there is one, else Triton's interpreter", device: "auto" },
    ...devices.map((device) => ({
      label: device.name,
      description: device.device,
      detail: `compute capability ${device.capability}`,
      device: device.device,
    })),
    { label: "No GPU", description: "interpreter", detail: "Triton's interpreter: checks kernels, times nothing", device: "interpreter" },
  ].map((item) => (item.device === now ? { ...item, label: `$(check) ${item.label}` } : item));
  const chosen = await vscode.window.showQuickPick(items, { placeHolder: "Where kernels are validated" });
  if (chosen === undefined || chosen.device === now) return;
  const isOpen = vscode.workspace.workspaceFolders !== undefined;
  const target = isOpen ? vscode.ConfigurationTarget.Workspace : vscode.ConfigurationTarget.Global;
  await vscode.workspace.getConfiguration(SECTION).update("device", chosen.device, target);
}
