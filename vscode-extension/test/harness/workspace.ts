// A folder to open: samples of the repository with small shapes, since there may be no GPU here.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { ROOT } from "./paths";

const SMALL: Record<string, [string, string][]> = {
  "rms_norm.py": [
    ["8, 1024, 4096", "2, 4, 64"],
    ["[4096]", "[64]"],
  ],
  "softmax.py": [["8192, 4096", "8, 64"]],
};

/** Copies samples into a project of its own. */
export function createWorkspace(folder: string, samples: string[] = Object.keys(SMALL)): string {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "pyproject.toml"), `[project]\nname = "${basename(folder)}"\nversion = "1.0"\n`);
  for (const name of samples) writeFileSync(join(folder, name), small(name));
  return folder;
}

function small(name: string): string {
  let text = readFileSync(join(ROOT, "samples", name), "utf8");
  for (const [large, little] of SMALL[name] ?? []) {
    if (!text.includes(large)) throw new Error(`samples/${name} no longer has ${large}`);
    text = text.replaceAll(large, little);
  }
  return text;
}
