// Usage: node main.js test | host [SUITE…] | session | measured | estimate | screenshots | typing OUTPUT

import { join } from "node:path";
import { FRAMES, IMAGES } from "./harness/paths";
import { type Run, withRun } from "./harness/run";
import { runHostSuites } from "./host_suites";
import { runEstimate } from "./session/estimate";
import { runMeasured } from "./session/measured";
import { runSession } from "./session/run";
import { measureTyping } from "./typing/run";

const [part = "test", ...names] = process.argv.slice(2);

/** The number of failures. */
async function main(run: Run): Promise<number> {
  if (part === "typing") return await measureTyping(run, names[0] ?? "typing.json");
  const installation = run.install("vscode");
  const pictures = process.env.PICTURES ?? join(run.folder, "images");
  switch (part) {
    case "test":
      return (
        (await runHostSuites(run, installation)) +
        (await runMeasured(run, installation, pictures)) +
        (await runEstimate(run, installation, pictures)) +
        (await runSession(run, installation, pictures))
      );
    case "host":
      return await runHostSuites(run, installation, names);
    case "session":
      return await runSession(run, installation, pictures);
    case "measured":
      return await runMeasured(run, installation, pictures);
    case "estimate":
      return await runEstimate(run, installation, pictures);
    case "screenshots":
      return (
        (await runMeasured(run, installation, IMAGES)) +
        (await runEstimate(run, installation, IMAGES)) +
        (await runSession(run, installation, IMAGES, FRAMES))
      );
    default:
      throw new Error(`there is no part ${part}`);
  }
}

withRun(main).then(
  (failed) => process.exit(failed === 0 ? 0 : 1),
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);
