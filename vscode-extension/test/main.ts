// Usage: node main.js host|session|screenshots|typing [NAME…]

import { withRun } from "./harness/run";
import { runHostSuites } from "./host_suites";

const [part, ...names] = process.argv.slice(2);

async function main(): Promise<number> {
  switch (part) {
    case "host":
      return await withRun((run) => runHostSuites(run, names));
    default:
      throw new Error(`there is no part ${part}`);
  }
}

main().then(
  (failed) => process.exit(failed === 0 ? 0 : 1),
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);
