// The server's own environment: made once from the wheel that comes with the extension, in VS Code's storage for it.

import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import * as vscode from "vscode";
import { setting } from "./configuration";
import { mayRun, pathInterpreter, selectedInterpreter } from "./interpreter";
import { waitForLock } from "./lock";
import * as problems from "./problems";
import { onPath, ProgramFailed, run } from "./programs";

const LEAST_PYTHON = [3, 11] as const;
const KEPT_DAYS = 7;
const STAMP = "complete"; // written last
/** Neither the folder where VS Code was started nor the user's PYTHONPATH may stand in for what is installed here. */
const ISOLATED = "-I";
const NEWEST_FIRST = ["python3.13", "python3.12", "python3.11"];

/**
 * The Python of the environment with this version's server in it; made first where it is not there yet.
 * Throws a Problem.
 */
export async function bundledServer(context: vscode.ExtensionContext, log: vscode.LogOutputChannel): Promise<string> {
  const bundled = vscode.Uri.joinPath(context.extensionUri, "bundled").fsPath;
  const storage = context.globalStorageUri.fsPath;
  const folder = await serverFolder(context);
  if (await isComplete(folder)) return pythonIn(folder);
  await mkdir(storage, { recursive: true });
  const release = await waitForLock(join(storage, "installing"), () => log.info("Another window is installing the server"));
  try {
    if (await isComplete(folder)) return pythonIn(folder); // by another window, meanwhile
    const title = "Kernel LSP: installing its server";
    await vscode.window.withProgress({ location: vscode.ProgressLocation.Window, title }, (progress) =>
      install(folder, bundled, log, (message) => progress.report({ message })),
    );
    await removeOthers(storage, folder).catch((error: unknown) => log.warn(`Older servers stay: ${String(error)}`));
  } finally {
    await release();
  }
  return pythonIn(folder);
}

/** After a server that did not run: the next start makes its environment anew. */
export async function distrustServer(context: vscode.ExtensionContext): Promise<void> {
  await rm(join(await serverFolder(context), STAMP), { force: true });
}

async function serverFolder(context: vscode.ExtensionContext): Promise<string> {
  const bundled = vscode.Uri.joinPath(context.extensionUri, "bundled").fsPath;
  return join(context.globalStorageUri.fsPath, `server-${await fingerprint(bundled)}`);
}

function pythonIn(folder: string): string {
  return process.platform === "win32" ? join(folder, "Scripts", "python.exe") : join(folder, "bin", "python");
}

/** The interpreter it was made from may have gone since. The stamp's time says when it was last in use. */
async function isComplete(folder: string): Promise<boolean> {
  const now = new Date();
  return Promise.all([utimes(join(folder, STAMP), now, now), stat(pythonIn(folder))]).then(
    () => true,
    () => false,
  );
}

async function fingerprint(bundled: string): Promise<string> {
  const names = (await readdir(bundled)).sort();
  const hash = createHash("sha256");
  for (const name of names) hash.update(name).update(await readFile(join(bundled, name)));
  return hash.digest("hex").slice(0, 16);
}

async function install(folder: string, bundled: string, log: vscode.LogOutputChannel, tell: (message: string) => void): Promise<void> {
  const base = await basePython();
  log.info(`Making the server's environment with ${base.path} (Python ${base.version}) in ${folder}`);
  await rm(folder, { recursive: true, force: true });
  tell("making an environment");
  await run(base.path, [ISOLATED, "-m", "venv", folder]).catch((error: unknown) => {
    log.error(String(error));
    throw problems.installFailed(`${base.path} could not make an environment in ${folder}. ${lastLine(error)}`);
  });
  tell("downloading packages");
  const wheel = (await readdir(bundled)).find((name) => name.endsWith(".whl"));
  if (wheel === undefined) throw problems.installFailed("the extension's package is incomplete. Install it again.");
  const pip = [ISOLATED, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--timeout", "10", "--retries", "1"];
  const began = Date.now();
  try {
    const constraints = ["-c", join(bundled, "constraints.txt")];
    log.debug(await run(pythonIn(folder), [...pip, ...constraints, join(bundled, wheel)]));
    await run(pythonIn(folder), [ISOLATED, "-c", "import kernel_lsp.cli, kernel_lsp.server.control.transport"], 60);
  } catch (error) {
    log.error(String(error));
    await rm(folder, { recursive: true, force: true });
    throw pipProblem(error);
  }
  await writeFile(join(folder, STAMP), "");
  log.info(`The server's environment is ready after ${((Date.now() - began) / 1000).toFixed(1)} s`);
}

function pipProblem(error: unknown): problems.Problem {
  const output = error instanceof ProgramFailed ? error.output : String(error);
  if (/CERTIFICATE_VERIFY_FAILED|SSLError/.test(output)) return problems.certificate();
  const unreachable =
    /connection broken|Failed to establish|Name or service not known|Temporary failure|timed out|ProxyError|Connection refused/i;
  if (unreachable.test(output)) return problems.offline();
  return problems.installFailed(lastLine(error));
}

function lastLine(error: unknown): string {
  const lines = (error instanceof ProgramFailed ? error.output : String(error)).split("\n").filter(Boolean);
  const line = lines.findLast((candidate) => candidate.startsWith("ERROR")) ?? lines.at(-1) ?? "";
  return line.replace(/^ERROR: */, "");
}

interface Python {
  path: string;
  version: string;
}

/** The Python that makes the environment: the setting's, else the first that is new enough. Throws a Problem. */
async function basePython(): Promise<Python> {
  const named: string = setting("python", "");
  if (named !== "") return await checked(named.replace(/^~(?=[/\\])/, homedir()));
  const selected = await selectedInterpreter(undefined);
  const others = await Promise.all(NEWEST_FIRST.map(onPath));
  const candidates = [selected, await pathInterpreter(), ...others].filter((path): path is string => path !== undefined && mayRun(path));
  let problem: unknown = problems.noPython();
  for (const path of new Set(candidates)) {
    try {
      return await checked(path);
    } catch (error) {
      problem = error;
    }
  }
  throw problem;
}

async function checked(path: string): Promise<Python> {
  let version: string;
  try {
    version = (await run(path, [ISOLATED, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], 20)).trim();
  } catch (error) {
    throw problems.pythonDoesNotRun(path, lastLine(error));
  }
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const isOld = major < LEAST_PYTHON[0] || (major === LEAST_PYTHON[0] && minor < LEAST_PYTHON[1]);
  if (isOld) throw problems.pythonTooOld(path, version);
  await run(path, [ISOLATED, "-c", "import ensurepip, venv"], 20).catch(() => {
    throw problems.noVenv(path, version); // Debian keeps these in a package of their own
  });
  return { path, version };
}

/** Environments of earlier versions of the extension, but for those that another window may still run. */
async function removeOthers(storage: string, folder: string): Promise<void> {
  for (const name of await readdir(storage)) {
    const path = join(storage, name);
    if (!name.startsWith("server-") || path === folder) continue;
    const used = await stat(join(path, STAMP)).then(
      ({ mtimeMs }) => mtimeMs,
      () => 0,
    );
    if (Date.now() - used > KEPT_DAYS * 86_400_000) await rm(path, { recursive: true, force: true });
  }
}
