// VS Code's server: the extension installed into it as a user would, then started, on a free port of this machine.

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { cpSync, mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { BUILT, SERVER, torchPython, VSIX } from "./paths";
import { marked } from "./processes";
import { QUIET, type Settings } from "./settings";

const STARTING_SECONDS = 60;

/** One VS Code: its extensions, its data and what it runs. `folder` holds everything of it. */
export interface Installation {
  folder: string;
  mark: string;
}

/** What is in an installation besides VS Code: stubs of test/stubs, and the .vsix unless it is to be without. */
export interface Contents {
  stubs: string[];
  extension: boolean;
}

export function install(folder: string, mark: string, settings: Settings, { stubs, extension }: Contents): Installation {
  const installation = { folder, mark };
  writeSettings(installation, settings);
  for (const stub of stubs) {
    const { publisher, name, version } = JSON.parse(readFileSync(join(BUILT, stub, "package.json"), "utf8"));
    cpSync(join(BUILT, stub), join(folder, "extensions", `${publisher}.${name}-${version}`), { recursive: true });
  }
  if (!extension) return installation;
  const options = { env: marked(mark), stdio: ["ignore", "pipe", "pipe"] as ["ignore", "pipe", "pipe"] };
  execFileSync(process.execPath, [SERVER, ...places(installation), "--install-extension", VSIX], options);
  return installation;
}

export function writeSettings({ folder }: Installation, settings: Settings): void {
  const user = join(folder, "data", "User");
  mkdirSync(user, { recursive: true });
  writeFileSync(join(user, "settings.json"), JSON.stringify({ ...QUIET, ...settings }, null, 2));
}

export interface Server {
  url: string;
  process: ChildProcess;
}

/** Starts it, in a group of its own. `environment` is what the extensions see besides this process's own. */
export async function start(installation: Installation, environment: NodeJS.ProcessEnv = {}): Promise<Server> {
  const log = join(installation.folder, "server.log");
  const child = spawn(
    process.execPath,
    [
      SERVER,
      ...places(installation),
      ...["--host", "127.0.0.1", "--port", "0"],
      "--without-connection-token",
      "--accept-server-license-terms",
      "--enable-smoke-test-driver",
      "--telemetry-level",
      "off",
    ],
    {
      // A store of its own: what the user, or an earlier run, validated would count here, too.
      env: marked(installation.mark, {
        TEST_PYTHON: torchPython(),
        KERNEL_LSP_STORE: join(installation.folder, `store-${Date.now()}.sqlite`),
        ...environment,
      }),
      stdio: ["ignore", "pipe", openSync(log, "a")],
      detached: true,
    },
  );
  const port = await new Promise<string>((resolve, reject) => {
    let text = "";
    const timer = setTimeout(() => reject(new Error(`VS Code did not start:\n${text}`)), STARTING_SECONDS * 1000);
    child.stdout?.on("data", (chunk: Buffer) => {
      text += chunk.toString();
      const found = /listening on (\d+)/.exec(text)?.[1];
      if (found !== undefined) resolve(found);
    });
    child.on("exit", (code) => reject(new Error(`VS Code ended with ${code}:\n${text}\n(${log})`)));
    child.on("exit", () => clearTimeout(timer));
    child.on("spawn", () => timer.unref());
  });
  return { url: `http://127.0.0.1:${port}`, process: child };
}

function places({ folder }: Installation): string[] {
  return ["--server-data-dir", folder, "--extensions-dir", join(folder, "extensions"), "--user-data-dir", join(folder, "data")];
}
