// Which tests run together in one VS Code, in this order.

import { activation } from "./activation";
import type { Test } from "./runner";

export const main: Record<string, Test[]> = {
  trusted: [...activation],
};
