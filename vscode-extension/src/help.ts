// What helps against an error of the server's: its buttons, by its code (docs/errors.md) and by the setting that its message names.

import type { Action } from "./problems";

const BY_CODE: Record<string, Action[]> = {
  ClassChanged: ["generateAgain"],
  ImportFailed: ["selectInterpreter"],
  InterpreterMissing: ["selectInterpreter"],
  NoExampleInputs: ["addExampleInputs"],
  NoSuchDevice: ["kernelLsp.selectGpu"],
  PackageBroken: ["selectInterpreter"],
  PackageMissing: ["selectInterpreter"],
  PackageTooOld: ["selectInterpreter"],
  UntrustedWorkspace: ["manageTrust"],
};

export function helpFor(code: string, message: string): Action[] {
  const found = BY_CODE[code] ?? [];
  const setting = namedSetting(message);
  const isCovered = setting === undefined || (setting === "kernelLsp.interpreter" && found.includes("selectInterpreter"));
  return isCovered ? found : [...found, "openSettings"];
}

/** The first setting that a message names: what it says to set. */
export function namedSetting(message: string): string | undefined {
  return /kernelLsp\.[A-Za-z]+(?:\.[A-Za-z]+)*/.exec(message)?.[0];
}
