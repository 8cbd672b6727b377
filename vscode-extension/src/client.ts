// The language client: what it tells the server at the start, and what it does otherwise than VS Code's own.

import * as vscode from "vscode";
import {
  type Executable,
  LanguageClient,
  type LanguageClientOptions,
  type Middleware,
  type ProgressToken,
  RevealOutputChannelOn,
} from "vscode-languageclient/node";
import { explicitSettings, type Settings, settingNames } from "./configuration";
import { restartPolicy } from "./crashes";
import { selectedInterpreter } from "./interpreter";
import type { Logs } from "./logs";
import { explain } from "./messages";
import type { Reported } from "./progress";
import { SECTION } from "./protocol";

export interface ClientEvents {
  /** The server wants a page shown. False leaves it to VS Code. */
  showDocument: (uri: vscode.Uri) => Promise<boolean>;
  /** How far something has come. */
  progress: (token: ProgressToken, reported: Reported) => void;
  /** Whether this client is still the one in use. */
  wanted: () => boolean;
  /** The server ended so many times, and will not be started again. */
  gaveUp: (times: number) => void;
  /** A line of the server's standard error. */
  said: (line: string) => void;
}

/** Says what goes wrong in the log. The status item and the commands say it where the user looks. */
class QuietClient extends LanguageClient {
  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }
}

/** The commands to which hovers have links. VS Code follows no others there. */
const LINKED = ["generate", "restore", "showChange", "showReport", "validate"].map((name) => `kernelLsp.${name}`);

const PYTHON = [{ language: "python", scheme: "file" }];

export function createClient(
  context: vscode.ExtensionContext,
  server: Executable,
  logs: Logs,
  paused: () => boolean,
  events: ClientEvents,
): LanguageClient {
  const options: LanguageClientOptions = {
    documentSelector: PYTHON,
    outputChannel: logs.main,
    traceOutputChannel: logs.trace,
    revealOutputChannelOn: RevealOutputChannelOn.Never,
    // Asked for again when a server that ended is started again.
    initializationOptions: () => ({
      trusted: vscode.workspace.isTrusted,
      status: true,
      review: true,
      failures: true,
      commandLinks: true,
      paused: paused(),
    }),
    markdown: { isTrusted: { enabledCommands: LINKED } },
    initializationFailedHandler: () => false, // the one who starts it says so
    errorHandler: restartPolicy(events.wanted, events.gaveUp),
    middleware: middleware(settingNames(context.extension), events),
    // Python writes its log to standard error, whatever its level.
    stdioOptions: {
      stdout: () => undefined,
      stderr: (stream) => stream.on("data", (text: Buffer) => logServerOutput(logs.main, text.toString(), events.said)),
    },
  };
  return new QuietClient(SECTION, "Kernel LSP", server, options);
}

function middleware(names: string[], events: ClientEvents): Middleware {
  return {
    // From a lens or a code action. What comes through the palette is explained there.
    executeCommand: async (command, args, next) => {
      try {
        return await next(command, args);
      } catch (error) {
        void explain(error);
        return undefined;
      }
    },
    workspace: {
      configuration: async (params) =>
        await Promise.all(
          params.items.map((item) => {
            const scope = item.scopeUri === undefined ? undefined : vscode.Uri.parse(item.scopeUri);
            return item.section === SECTION ? serverSettings(names, scope) : null;
          }),
        ),
    },
    window: {
      showDocument: async (params, token, next) => {
        const shown = await events.showDocument(vscode.Uri.parse(params.uri));
        return shown ? { success: true } : await next(params, token);
      },
    },
    handleWorkDoneProgress: (token, reported, next) => {
      events.progress(token, reported);
      if (reported.kind === "end") next(token, reported); // the client forgets the token; it has shown nothing
    },
  };
}

async function serverSettings(names: string[], scope: vscode.Uri | undefined): Promise<Settings> {
  return { ...explicitSettings(names, scope), selectedInterpreter: (await selectedInterpreter(scope)) ?? "" };
}

function logServerOutput(log: vscode.LogOutputChannel, text: string, said: (line: string) => void): void {
  for (const line of text.split("\n").filter(Boolean)) {
    said(line.trim());
    if (/^(ERROR|CRITICAL|Traceback)/.test(line)) log.error(line);
    else if (line.startsWith("WARNING")) log.warn(line);
    else log.info(line);
  }
}
