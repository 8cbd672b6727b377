// Usage: node main.js host|session …

import { join } from "node:path";
import { runSuite } from "./harness/host_tests";
import { withRun } from "./harness/run";
import { createWorkspace } from "./harness/workspace";

async function host(): Promise<number> {
  return await withRun(async (run) => {
    const installation = run.install("vscode");
    const workspace = createWorkspace(join(run.folder, "workspace"));
    return await runSuite(run, installation, { name: "trusted", workspace, seconds: 300 });
  });
}

host().then(
  (failed) => process.exit(failed === 0 ? 0 : 1),
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);
