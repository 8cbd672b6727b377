// What happens when the server ends on its own: it is started again, unless that happens again and again.

import { CloseAction, ErrorAction, type ErrorHandler } from "vscode-languageclient/node";
import { crashed, type Problem } from "./problems";

const MOST = 5;
const WITHIN = 3 * 60_000; // milliseconds

export function restartPolicy(gaveUp: (problem: Problem) => void): ErrorHandler {
  const ends: number[] = [];
  return {
    error: () => ({ action: ErrorAction.Continue, handled: true }),
    closed: () => {
      const now = Date.now();
      ends.push(now);
      while (now - (ends[0] ?? now) > WITHIN) ends.shift();
      if (ends.length < MOST) return { action: CloseAction.Restart, handled: true };
      gaveUp(crashed(ends.length));
      return { action: CloseAction.DoNotRestart, handled: true };
    },
  };
}
