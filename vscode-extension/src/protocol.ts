// What goes between this client and the server beyond the language server protocol (docs/architecture.md).

import type { Range } from "vscode-languageclient/node";

export const SECTION = "kernelLsp";

/** `kernelLsp/status`, a notification: what the server is doing, for the status item. */
export interface Status {
  state: "idle" | "busy" | "paused" | "error";
  message: string;
  jobs: Job[];
}

export interface Job {
  id: string;
  kind: "generate" | "validate" | "restore";
  uri: string;
  className: string;
  stage: string;
  message: string;
  /** 0 to 100 */
  percentage: number;
}

/** `kernelLsp/proposal`, a notification: a new kernel for a file that holds another one already. */
export interface Proposal {
  jobId: string;
  uri: string;
  className: string;
  /** URI of the kernel file. */
  file: string;
  /** What the file would hold. */
  text: string;
  /** The verdict in one sentence. */
  why: string;
}

/** `kernelLsp/failure`, a notification: what the user asked for has failed, or (a warning) something on the way. */
export interface Failure {
  /** What happened, what to do, and last the details. */
  message: string;
  severity: "error" | "warning";
  /** Of the error, as in docs/errors.md; "" where it has none. */
  code: string;
  /** The class that it is about; "" where it is about none. */
  uri: string;
  className: string;
}

/** One entry of what the command `kernelLsp.classes` returns. */
export interface ModuleClass {
  className: string;
  range: Range;
  /** URI of the kernel file, null where there is none. */
  kernel: string | null;
  /** Id of the job that runs for it. */
  running: string | null;
}

/** One entry of what the command `kernelLsp.devices` returns. */
export interface Device {
  /** As the setting `kernelLsp.device` names it: "cuda:0". */
  device: string;
  name: string;
  /** Of its compute capability: "9.0". */
  capability: string;
}
