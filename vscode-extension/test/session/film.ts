// A film of the session: what the browser draws, whenever it draws, without the page taking part. tools/recording.py makes an
// animated picture of it.

import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { CDPSession, Page } from "playwright-core";

export class Film {
  private constructor(readonly session: CDPSession) {}

  /** Each frame becomes a file that is named by its milliseconds. */
  static async start(page: Page, folder: string): Promise<Film> {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    const session = await page.context().newCDPSession(page);
    let began: number | undefined;
    session.on("Page.screencastFrame", ({ data, metadata, sessionId }) => {
      const at = (metadata.timestamp ?? 0) * 1000;
      began ??= at;
      const name = `${String(Math.round(at - began)).padStart(7, "0")}.png`;
      writeFileSync(join(folder, name), Buffer.from(data, "base64"));
      void session.send("Page.screencastFrameAck", { sessionId }).catch(() => undefined); // the page may be closed meanwhile
    });
    await session.send("Page.startScreencast", { format: "png" });
    return new Film(session);
  }

  async stop(): Promise<void> {
    await this.session.send("Page.stopScreencast");
  }
}
