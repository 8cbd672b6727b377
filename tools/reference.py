"""Write docs/settings.md and docs/errors.md from kernel_lsp/settings/options.py and kernel_lsp/errors.py.

``--check`` writes nothing and exits with 1 if a page is not up to date.
"""

import sys
from pathlib import Path

from kernel_lsp import errors
from kernel_lsp.settings import Settings, camel, kebab, options

DOCS = Path(__file__).resolve().parent.parent / "docs"

SETTINGS = """\
# Settings

<!-- Written by `make docs` from kernel_lsp/settings/options.py. -->

The same everywhere: `kernelLsp.*` in the editor, `[tool.kernel-lsp]` in the nearest pyproject.toml, options on the
command line. The later named wins over the earlier: pyproject.toml, editor, command line. A value that is not valid is
reported and leaves the earlier one standing. In a workspace that is not trusted, settings that name programs, or where
your code and keys are sent (marked ⚙), are ignored. `openai.base-url` is `base-url` in the table `[tool.kernel-lsp.openai]`.

| editor | pyproject.toml | default | what it does |
| --- | --- | --- | --- |
{rows}

## Example inputs in pyproject.toml

Where the file has no `get_inputs_<Class>()` or `get_inputs()`, a table names the inputs of a class. Tensors are written
`"<dtype>[<sizes>]"` and drawn at random; anything else is passed as it stands.

```toml
[tool.kernel-lsp.inputs."model/norm.py::RMSNorm"]
init = [512]
init-kwargs = {{ eps = 1e-6 }}
args = ["float32[8, 512]"]
```
"""

ERRORS = """\
# Errors

<!-- Written by `make docs` from kernel_lsp/errors.py. -->

What can go wrong, and what to do about it. The code stands in `--json` (`error.code`) and in the log.

| code | message |
| --- | --- |
{rows}
"""


def settings_page() -> str:
    rows = []
    defaults = Settings()
    for option in options():
        default = getattr(getattr(defaults, option.group) if option.group else defaults, option.field.name)
        shown = str(default).lower() if isinstance(default, bool) else str(default).replace("'", '"') or '""'
        mark = " ⚙" if option.field.metadata["program"] else ""
        cells = [
            f"`kernelLsp.{camel(option.name)}`{mark}",
            f"`{kebab(option.name)}`",
            f"`{shown}`",
            option.field.metadata["doc"],
        ]
        rows.append(f"| {' | '.join(cells)} |")
    return SETTINGS.format(rows="\n".join(rows))


def errors_page() -> str:
    kinds = sorted(errors.UserError.__subclasses__(), key=lambda kind: kind.__name__)
    return ERRORS.format(rows="\n".join(f"| `{kind.__name__}` | {kind.template} |" for kind in kinds))


def main() -> int:
    stale = []
    for name, text in (("settings.md", settings_page()), ("errors.md", errors_page())):
        page = DOCS / name
        if page.exists() and page.read_text("utf-8") == text:
            continue
        stale.append(name)
        if "--check" not in sys.argv:
            page.write_text(text, "utf-8")
    if stale and "--check" in sys.argv:
        print(f"not up to date: {', '.join(stale)}; run make docs", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
