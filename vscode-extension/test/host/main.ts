// What VS Code's extension host runs: the suite that the harness names.

import { runAll } from "./runner";
import { suites } from "./suites";

export async function run(): Promise<void> {
  const name = process.env.TEST_SUITE ?? "";
  const suite = suites[name];
  if (suite === undefined) throw new Error(`there is no suite ${name}`);
  await runAll(name, suite);
}
