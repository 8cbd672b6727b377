// The server's life as the user sees it.

import * as vscode from "vscode";
import { api, codes, debugInformation, lenses, open, until } from "./editor";
import type { Test } from "./runner";

async function otherServer(before: number): Promise<void> {
  await until("another server", async () => {
    const now = await debugInformation().catch(() => undefined);
    return now !== undefined && now.pid !== before;
  });
}

/** A new server knows the open file, and the verdict that was reached here, from the store. */
async function knows(name: string): Promise<void> {
  const { document } = await open(name);
  await until("status: idle", async () => (await api()).status().state === "idle");
  await until("the lens", async () => (await lenses(document.uri))[0]?.startsWith("✓"));
  await until("kernel-valid", () => codes(document.uri).join() === "kernel-valid");
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

export const serving: Test[] = [
  {
    name: "a server that was killed is started again, and knows what the first one knew",
    body: async () => {
      await open("rms_norm.py");
      const { pid } = await debugInformation();
      process.kill(pid, "SIGKILL");
      await otherServer(pid);
      await knows("rms_norm.py");
    },
  },
  {
    name: "Restart Server starts another one, and the first one is gone",
    body: async () => {
      const { pid } = await debugInformation();
      await vscode.commands.executeCommand("kernelLsp.restartServer");
      await otherServer(pid);
      await knows("rms_norm.py");
      await until("the end of the first one", () => !isAlive(pid));
    },
  },
];
