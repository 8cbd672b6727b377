// Which tests run together in one VS Code, in this order.

import { activation } from "./activation";
import { buttons } from "./buttons";
import { cancelling } from "./cancelling";
import { generating } from "./generating";
import { installing } from "./installing";
import { interpreting } from "./interpreting";
import { pressing } from "./pressing";
import { reporting } from "./reporting";
import { reviewing } from "./reviewing";
import type { Test } from "./runner";
import { serving } from "./serving";
import { settings } from "./settings";
import { untrusted } from "./untrusted";

export const suites: Record<string, Test[]> = {
  installing,
  trusted: [
    ...[...activation, ...buttons, ...generating, ...reviewing, ...reporting, ...cancelling, ...serving, ...settings],
    ...[...pressing, ...interpreting],
  ],
  untrusted,
};
