// The buttons of error messages.

import assert from "node:assert/strict";
import { helpFor, namedSetting } from "../../src/help";
import type { Test } from "./runner";

/** What the server says, and the setting that Open Settings shows. */
const SAYS: [code: string, message: string, setting: string][] = [
  ["FileNotWritten", "a.py could not be written: full. Set kernelLsp.kernelFolder to a folder.", "kernelLsp.kernelFolder"],
  ["ModelServerNotNamed", "No server. Set kernelLsp.openai.baseUrl, or kernelLsp.openai.model.", "kernelLsp.openai.baseUrl"],
  ["ModelUnknown", "There is no model x. Set kernelLsp.openai.model to one of them.", "kernelLsp.openai.model"],
];

export const buttons: Test[] = [
  {
    name: "an error that names a setting has the button Open Settings, for that one",
    body: async () => {
      for (const [code, message, setting] of SAYS) {
        assert.deepEqual(helpFor(code, message), ["openSettings"]);
        assert.equal(namedSetting(message), setting);
      }
      assert.deepEqual(helpFor("NoSuchDevice", "Set kernelLsp.device."), ["kernelLsp.selectGpu", "openSettings"]);
    },
  },
  {
    name: "Select Interpreter stands for the setting of the interpreter; an error without a setting has no such button",
    body: async () => {
      assert.deepEqual(helpFor("PackageMissing", "No torch. Choose another (kernelLsp.interpreter)."), ["selectInterpreter"]);
      assert.deepEqual(helpFor("UntrustedWorkspace", "This folder is not trusted."), ["manageTrust"]);
      assert.deepEqual(helpFor("", "Something else."), []);
    },
  },
];
