import assert from "node:assert/strict";
import { api, open } from "./editor";
import type { Test } from "./runner";
import { say } from "./runner";

const MOST_MILLISECONDS = 200;

export const activation: Test[] = [
  {
    name: "a Python file activates it, within 200 ms before its server is started",
    body: async () => {
      await open("rms_norm.py");
      const found = await api();
      assert.equal(found.status().state, "idle", found.status().text);
      say(`  activation: ${found.activationMilliseconds.toFixed(0)} ms`);
      assert.ok(found.activationMilliseconds <= MOST_MILLISECONDS, `${found.activationMilliseconds} ms`);
    },
  },
];
