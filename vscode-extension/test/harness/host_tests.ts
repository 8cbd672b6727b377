// Runs a suite of test/host inside VS Code's extension host. VS Code tells the page how it ended; what the tests say
// comes through a file.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { BUILT } from "./paths";
import { pause } from "./processes";
import type { Run } from "./run";
import type { Installation } from "./vscode";
import { answerQuestions } from "./window";

export interface Suite {
  name: string;
  workspace: string;
  seconds: number;
  environment?: NodeJS.ProcessEnv;
}

/** The number of tests that failed. */
export async function runSuite(run: Run, installation: Installation, suite: Suite): Promise<number> {
  const output = join(run.folder, `${suite.name}.txt`);
  writeFileSync(output, "");
  const questions = join(run.folder, `${suite.name}-questions`);
  const environment = {
    ...suite.environment,
    ...{ TEST_SUITE: suite.name, TEST_OUTPUT: output, TEST_WORKSPACE: suite.workspace, TEST_QUESTIONS: questions },
  };
  const server = await run.start(installation, environment);
  const page = await (await run.browser()).newPage();
  const done = new Promise<number>((resolve) => void page.exposeFunction("codeAutomationExit", resolve));
  await page.exposeFunction("codeAutomationLog", () => undefined);
  const remote = server.url.replace("http:", "vscode-remote:");
  const payload = [
    ["extensionDevelopmentPath", `${remote}${join(BUILT, "python")}`],
    ["extensionTestsPath", `${remote}${join(BUILT, "host.js")}`],
  ];
  await page.goto(`${server.url}/?folder=${suite.workspace}&payload=${encodeURIComponent(JSON.stringify(payload))}`);
  const late = pause(suite.seconds * 1000).then(() => "late" as const);
  const printing = print(output);
  const answering = answerQuestions(page, questions);
  const code = await Promise.race([done, late]);
  printing.stop();
  answering.stop();
  if (code === "late") {
    await page.screenshot({ path: join(run.folder, `${suite.name}.png`) });
    console.log(`✗ ${suite.name}: not ended after ${suite.seconds} s`);
  }
  await run.endProcesses();
  return code === "late" ? 1 : code;
}

/** Prints a file as it grows. */
function print(path: string): { stop: () => void } {
  let shown = 0;
  const show = (): void => {
    const text = readFileSync(path, "utf8");
    process.stdout.write(text.slice(shown));
    shown = text.length;
  };
  const timer = setInterval(show, 200);
  return {
    stop: () => {
      clearInterval(timer);
      show();
    },
  };
}
