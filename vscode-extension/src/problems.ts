// What can go wrong before the server runs, in the user's words: what happened, what to do about it, and last the details.

/** What a button of a message does: a command of the palette, or one of messages.ts. */
export type Action =
  | "kernelLsp.restartServer"
  | "kernelLsp.selectGpu"
  | "kernelLsp.showLogs"
  | "addExampleInputs"
  | "generateAgain"
  | "manageTrust"
  | "openSettings"
  | "selectInterpreter";

/** A problem with a message for the user, and what helps. `detail` comes last, since a notification may show one line. */
export class Problem extends Error {
  constructor(
    message: string,
    readonly actions: Action[] = ["kernelLsp.restartServer"],
    detail = "",
  ) {
    super(detail === "" ? message : `${message} ${detail}`);
  }
}

export function noPython(): Problem {
  return new Problem(
    "Kernel LSP needs a Python 3.11 or newer to run its server, and found none. Install one, or name it in the setting kernelLsp.python.",
    ["openSettings", "kernelLsp.restartServer"],
  );
}

export function pythonDoesNotRun(python: string, detail: string): Problem {
  const message = `Kernel LSP could not run ${python} for its server. Name another Python in the setting kernelLsp.python.`;
  return new Problem(message, ["openSettings", "kernelLsp.restartServer"], detail);
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
    ["kernelLsp.restartServer", "openSettings"],
  );
}

export function certificate(): Problem {
  return new Problem(
    "Kernel LSP could not install its server: the certificate of Python's package index was not accepted. Where a company's proxy stands in between, name its certificate in pip's configuration (pip config set global.cert FILE), and try again.",
  );
}

export function installFailed(detail: string): Problem {
  return new Problem("Kernel LSP could not install its server. Try again, or look into the log.", undefined, detail);
}

export function didNotStart(detail: string): Problem {
  return new Problem("The server of Kernel LSP did not start. Try again, or look into the log.", undefined, detail);
}

export function notRunning(): Problem {
  return new Problem("The server of Kernel LSP is starting. Try again in a moment.", []);
}

export function notInEnvironment(python: string): Problem {
  return new Problem(
    `kernel-lsp is not installed in ${python}, and kernelLsp.importStrategy is fromEnvironment. Install it there, select another interpreter, or set importStrategy to useBundled.`,
    ["selectInterpreter", "openSettings", "kernelLsp.restartServer"],
  );
}

export function environmentDoesNotRun(python: string, detail: string): Problem {
  const message = `Kernel LSP could not run ${python}, from which kernelLsp.importStrategy has its server taken. Select another interpreter, or set importStrategy to useBundled.`;
  return new Problem(message, ["selectInterpreter", "openSettings", "kernelLsp.restartServer"], detail);
}

export function untrustedEnvironment(): Problem {
  return new Problem(
    "This folder is not trusted, so nothing of it is run, and kernelLsp.importStrategy asks for a server from its environment.",
    ["manageTrust"],
  );
}

export function crashed(times: number, lastWords: string): Problem {
  const message = `The server of Kernel LSP ended ${times} times within three minutes, and was not started again. Try again, or look into the log.`;
  return new Problem(message, undefined, lastWords === "" ? "" : `Its last words: ${lastWords}`);
}
