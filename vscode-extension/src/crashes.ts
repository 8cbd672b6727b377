// What happens when the server ends on its own: it is started again, unless that happens again and again.

import { CloseAction, ErrorAction, type ErrorHandler } from "vscode-languageclient/node";

const MOST = 5;
const WITHIN = 3 * 60_000; // milliseconds

/** `wanted`: whether this client is still the one in use; `gaveUp` gets how often its server ended. */
export function restartPolicy(wanted: () => boolean, gaveUp: (times: number) => void): ErrorHandler {
  const ends: number[] = [];
  return {
    error: () => ({ action: ErrorAction.Continue, handled: true }),
    closed: () => {
      if (!wanted()) return { action: CloseAction.DoNotRestart, handled: true };
      const now = Date.now();
      ends.push(now);
      while (now - (ends[0] ?? now) > WITHIN) ends.shift();
      if (ends.length < MOST) return { action: CloseAction.Restart, handled: true };
      gaveUp(ends.length);
      return { action: CloseAction.DoNotRestart, handled: true };
    },
  };
}
