"""Write what is documented from the code.

Those are docs/settings.md, docs/errors.md, the table of operators in docs/synthesizer.md, and the settings in the VS Code
extension.

``--check`` writes nothing and exits with 1 if a page is not up to date.
"""

import dataclasses
import json
import sys
import typing
from pathlib import Path

from kernel_lsp import errors
from kernel_lsp.settings import Settings, camel, kebab, options
from kernel_lsp.settings.options import Option, groups
from kernel_lsp.synthesis.operators import registry

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "vscode-extension" / "package.json"

#: The extension's own settings: how it starts the server.
EXTENSION_SETTINGS = {
    "kernelLsp.importStrategy": {
        "type": "string",
        "enum": ["useBundled", "fromEnvironment"],
        "enumDescriptions": [
            "The server that comes with the extension, in an environment of its own.",
            "The kernel-lsp that is installed in the selected interpreter's environment.",
        ],
        "default": "useBundled",
        "markdownDescription": "Which server runs.",
        "scope": "machine-overridable",
    },
    "kernelLsp.python": {
        "type": "string",
        "default": "",
        "markdownDescription": "The Python (3.11 or newer) that the server's own environment is made with. Empty: the selected "
        "interpreter where it is new enough, else one on PATH. Your modules run in `#kernelLsp.interpreter#`, not here.",
        "scope": "machine-overridable",
    },
    "kernelLsp.trace.server": {
        "type": "string",
        "enum": ["off", "messages", "verbose"],
        "default": "off",
        "markdownDescription": "What of the conversation with the server goes into the log *Kernel LSP Trace*.",
        "scope": "window",
    },
}
#: Of those, the ones that name programs.
EXTENSION_PROGRAMS = ["kernelLsp.importStrategy", "kernelLsp.python"]

SETTINGS = """\
# Settings

<!-- Written by `make docs` from kernel_lsp/settings/options.py. -->

The same everywhere: `kernelLsp.*` in the editor, `[tool.kernel-lsp]` in the nearest pyproject.toml, options on the
command line. The later named wins over the earlier: pyproject.toml, editor, command line. A value that is not valid is
reported and leaves the earlier one standing. In a workspace that is not trusted, settings that name programs or the store, or where
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

<!-- Written by `make docs` from kernel_lsp/errors/. -->

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


def extension_package() -> str:
    """The extension's package.json with the settings of now in it."""
    package = json.loads(PACKAGE.read_text("utf-8"))
    found = {f"kernelLsp.{camel(option.name)}": option for option in options()}
    properties = {name: _property(option) for name, option in found.items()}
    package["contributes"]["configuration"]["properties"] = properties | EXTENSION_SETTINGS
    programs = [name for name, option in found.items() if option.field.metadata["program"]]
    package["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"] = programs + EXTENSION_PROGRAMS
    return json.dumps(package, indent=2, ensure_ascii=False) + "\n"


def _property(option: Option) -> dict[str, object]:
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string"}
    owner = Settings if not option.group else groups()[option.group]
    kind = typing.get_type_hints(owner)[option.field.name]
    made = option.field.default_factory
    default = made() if made is not dataclasses.MISSING else option.field.default
    doc = option.field.metadata["doc"]
    if kind in kinds:
        shape: dict[str, object] = {"type": kinds[kind]}
    else:
        shape = {"type": "array", "items": {"type": "string"}}
    if option.name == "interpreter":  # the server's own Python is no use in VS Code, where another one is selected
        doc = doc.replace(
            "Empty: the Python that runs kernel-lsp.", "Empty: the interpreter that is selected in VS Code."
        )
    scope = "machine-overridable" if option.field.metadata["program"] else "resource"
    return {**shape, "default": default, "markdownDescription": doc, "scope": scope}


def errors_page() -> str:
    kinds = sorted(errors.UserError.__subclasses__(), key=lambda kind: kind.__name__)
    return ERRORS.format(rows="\n".join(f"| `{kind.__name__}` | {kind.template} |" for kind in kinds))


#: Between these lines of docs/synthesizer.md stands the table of operators.
LOWERED = "<!-- Written by `make docs` from the registry of operators. -->\n"
LOWERED_END = "<!-- End of what is written. -->\n"


def synthesizer_page(page: str) -> str:
    """docs/synthesizer.md with the operators of now in it."""
    before, _, rest = page.partition(LOWERED)
    _, _, after = rest.partition(LOWERED_END)
    return f"{before}{LOWERED}\n{registry.table()}\n\n{LOWERED_END}{after}"


def main() -> int:
    stale = []
    docs = ROOT / "docs"
    synthesizer = docs / "synthesizer.md"
    pages = {
        docs / "settings.md": settings_page(),
        docs / "errors.md": errors_page(),
        synthesizer: synthesizer_page(synthesizer.read_text("utf-8")),
        PACKAGE: extension_package(),
    }
    for page, text in pages.items():
        if page.exists() and page.read_text("utf-8") == text:
            continue
        stale.append(page.name)
        if "--check" not in sys.argv:
            page.write_text(text, "utf-8")
    if stale and "--check" in sys.argv:
        print(f"not up to date: {', '.join(stale)}; run make docs", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
