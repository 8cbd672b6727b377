// What can go wrong before the server runs, in the user's words: what happened, and what to do about it.

/** A problem with a message for the user, and the ids of the commands that help. */
export class Problem extends Error {
  constructor(
    message: string,
    readonly actions: Action[] = ["kernelLsp.restartServer", "kernelLsp.showLogs"],
  ) {
    super(message);
  }
}

export type Action = "kernelLsp.restartServer" | "kernelLsp.showLogs" | "openSettings" | "manageTrust";

export const ACTION_TITLES: Record<Action, string> = {
  "kernelLsp.restartServer": "Try Again",
  "kernelLsp.showLogs": "Show Logs",
  openSettings: "Open Settings",
  manageTrust: "Manage Workspace Trust",
};

export function noPython(): Problem {
  return new Problem(
    "Kernel LSP needs a Python 3.11 or newer to run its server, and found none. Install one, or name it in the setting kernelLsp.python.",
    ["openSettings", "kernelLsp.restartServer"],
  );
}

export function pythonDoesNotRun(python: string, detail: string): Problem {
  return new Problem(`Kernel LSP could not run ${python} for its server: ${detail}. Name another Python in the setting kernelLsp.python.`, [
    "openSettings",
    "kernelLsp.restartServer",
  ]);
}

export function pythonTooOld(python: string, version: string): Problem {
  return new Problem(
    `Kernel LSP needs Python 3.11 or newer to run its server; ${python} is ${version}. Name another in the setting kernelLsp.python. Your own code may stay where it is.`,
    ["openSettings", "kernelLsp.restartServer"],
  );
}

export function noVenv(python: string, version: string): Problem {
  return new Problem(
    `Kernel LSP could not make an environment for its server: ${python} cannot make virtual environments. On Debian or Ubuntu: sudo apt install python${version}-venv. Then try again.`,
  );
}

export function offline(): Problem {
  return new Problem(
    "Kernel LSP could not install its server, because Python's package index cannot be reached. Try again when this machine is online, or set kernelLsp.importStrategy to fromEnvironment and install kernel-lsp in your own environment.",
    ["kernelLsp.restartServer", "openSettings", "kernelLsp.showLogs"],
  );
}

export function certificate(): Problem {
  return new Problem(
    "Kernel LSP could not install its server: the certificate of Python's package index was not accepted. Where a company's proxy stands in between, name its certificate in pip's configuration (pip config set global.cert FILE), and try again.",
  );
}

export function installFailed(detail: string): Problem {
  return new Problem(`Kernel LSP could not install its server: ${detail}`);
}

export function didNotStart(detail: string): Problem {
  return new Problem(`The server of Kernel LSP did not start: ${detail}`);
}

export function notRunning(): Problem {
  return new Problem("The server of Kernel LSP is starting. Try again in a moment.", ["kernelLsp.showLogs"]);
}

export function notInEnvironment(python: string): Problem {
  return new Problem(
    `kernel-lsp is not installed in ${python}, and kernelLsp.importStrategy is fromEnvironment. Install it there, select another interpreter, or set importStrategy to useBundled.`,
    ["openSettings", "kernelLsp.restartServer"],
  );
}

export function environmentDoesNotRun(python: string, detail: string): Problem {
  return new Problem(
    `Kernel LSP could not run ${python}, from which kernelLsp.importStrategy has its server taken: ${detail}. Select another interpreter, or set importStrategy to useBundled.`,
    ["openSettings", "kernelLsp.restartServer"],
  );
}

export function untrustedEnvironment(): Problem {
  return new Problem(
    "This folder is not trusted, so nothing of it is run, and kernelLsp.importStrategy asks for a server from its environment.",
    ["manageTrust"],
  );
}

export function crashed(times: number, lastWords: string): Problem {
  const words = lastWords === "" ? "" : ` Its last words: ${lastWords}`;
  return new Problem(`The server of Kernel LSP ended ${times} times within three minutes, and was not started again.${words}`);
}
