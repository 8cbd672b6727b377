import assert from "node:assert/strict";
import { api, open } from "./editor";
import type { Test } from "./runner";
import { say } from "./runner";

/** The goal is 200 ms, and benchmarks/results/vscode.md has the figure. A machine under load takes longer. */
const MOST_MILLISECONDS = 1000;

export const activation: Test[] = [
  {
    name: "a Python file activates it, and its server is started soon",
    body: async () => {
      await open("rms_norm.py");
      const found = await api();
      assert.equal(found.status().state, "idle", found.status().text);
      say(`  activation: ${found.activationMilliseconds.toFixed(0)} ms`);
      assert.ok(found.activationMilliseconds <= MOST_MILLISECONDS, `${found.activationMilliseconds} ms`);
    },
  },
];
