// Pictures of the session: into the repository when they are asked for, else into the run's own folder.

import { join } from "node:path";
import type { Page } from "playwright-core";

export class Camera {
  constructor(
    readonly page: Page,
    readonly folder: string,
  ) {}

  async take(name: string): Promise<void> {
    await this.page.waitForTimeout(400); // what fades in is there
    await this.page.screenshot({ path: join(this.folder, `vscode-${name}.png`), caret: "hide" });
  }
}
