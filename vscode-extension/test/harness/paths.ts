// Where things lie. The programs of this folder run from the repository's root (tools/test-vscode).

import { join } from "node:path";

export const ROOT = process.cwd();
export const TOOLS = join(ROOT, ".editors", "vscode");
export const SERVER = join(TOOLS, "code-server", "node_modules", "code-server", "lib", "vscode", "out", "server-main.js");
export const VSIX = join(ROOT, "vscode-extension", "kernel-lsp.vsix");
export const BUILT = join(ROOT, "vscode-extension", "test", "dist");
/** Of the film of a session, which tools/recording.py reads. */
export const FRAMES = join(TOOLS, "frames");
export const IMAGES = join(ROOT, "docs", "images");

/** The Python that has torch and triton. */
export function torchPython(): string {
  const path = process.env.TEST_PYTHON;
  if (path === undefined) throw new Error("TEST_PYTHON is not set; tools/test-vscode sets it");
  return path;
}
