"""Write what is documented from the code.

Those are docs/settings.md, docs/errors.md, docs/generated.md, the table of operators in docs/synthesizer.md, and the settings in the VS Code
extension.

``--check`` writes nothing and exits with 1 if a page is not up to date.
"""

import dataclasses
import json
import sys
import typing
from pathlib import Path
from typing import Any

import generated_page

from kernel_lsp import errors
from kernel_lsp.settings import Settings, camel, kebab
from kernel_lsp.settings.options import Option, groups
from kernel_lsp.settings.sections import sections
from kernel_lsp.synthesis.operators import registry

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "vscode-extension" / "package.json"

#: The section at whose end the extension's own settings stand.
EXTENSION_SECTION = "Advanced"
#: The extension's own settings: how it starts the server.
EXTENSION_SETTINGS: dict[str, dict[str, Any]] = {
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

<!-- Written by `make docs` from kernel_lsp/settings/options.py and sections.py. -->

The same everywhere: `kernelLsp.*` in the editor, `[tool.kernel-lsp]` in the nearest pyproject.toml, options on the
command line. The later named wins over the earlier: pyproject.toml, editor, command line. A value that is not valid is
reported; editors, `watch` and `eval` keep the earlier one; `generate`, `validate`, `check` and `explain` end with status 2 before any work. In a workspace that is not trusted, settings that name programs or the store, or where
your code and keys are sent (marked ⚙), are ignored. `openai.base-url` is `base-url` in the table `[tool.kernel-lsp.openai]`.
Those without a name for pyproject.toml are in VS Code alone.

{sections}

## Example inputs in pyproject.toml

Where the file has no `get_inputs_<Class>()` or `get_inputs()`, a table names the inputs of a class. It goes before a `get_inputs()` of the file that is for
another class, of which this one is a part. Tensors are written
`"<dtype>[<sizes>]"` and drawn at random; anything else is passed as it stands.

```toml
[tool.kernel-lsp.inputs."model/norm.py::RMSNorm"]
init = [512]
init-kwargs = {{ eps = 1e-6 }}
args = ["float32[8, 512]"]
```

Several examples, for instance prefill and decode, stand in `examples`, each with `args` and `kwargs` of its own. They come to one kernel file, with kernels for each
that needs its own. Where the tensors of one have another floating-point dtype than the first one's, and the module's parameters that of the first, the module is
converted for it (`module.to(dtype)`).

```toml
[tool.kernel-lsp.inputs."model/attention.py::Attention"]
examples = [
  {{ args = ["float32[2, 128, 512]"] }},
  {{ args = ["float32[2, 1, 512]"], kwargs = {{ cache = "float32[2, 8, 127, 64]" }} }},
]
```
"""

SECTION = """\
## {title}

| editor | pyproject.toml | default | what it does |
| --- | --- | --- | --- |
{rows}
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
    parts = []
    for title, found in sections().items():
        rows = [_row(option) for option in found] + (_extension_rows() if title == EXTENSION_SECTION else [])
        parts.append(SECTION.format(title=title, rows="\n".join(rows)))
    return SETTINGS.format(sections="\n".join(parts).rstrip("\n"))


def _row(option: Option) -> str:
    defaults = Settings()
    default = getattr(getattr(defaults, option.group) if option.group else defaults, option.field.name)
    shown = str(default).lower() if isinstance(default, bool) else str(default).replace("'", '"') or '""'
    mark = " ⚙" if option.field.metadata["program"] else ""
    cells = [
        f"`kernelLsp.{camel(option.name)}`{mark}",
        f"`{kebab(option.name)}`",
        f"`{shown}`",
        option.field.metadata["doc"],
    ]
    return f"| {' | '.join(cells)} |"


def _extension_rows() -> list[str]:
    rows = []
    for name, shape in EXTENSION_SETTINGS.items():
        doc = shape["markdownDescription"].replace("#", "")
        values = zip(shape.get("enum", []), shape.get("enumDescriptions", []), strict=False)
        doc = " ".join([doc, *(f"`{value}`: {words}" for value, words in values)])
        mark = " ⚙" if name in EXTENSION_PROGRAMS else ""
        default = shape["default"] or '""'
        rows.append(f"| `{name}`{mark} | | `{default}` | {doc} |")
    return rows


def extension_package() -> str:
    """The extension's package.json with the settings of now in it."""
    package = json.loads(PACKAGE.read_text("utf-8"))
    package["contributes"]["configuration"] = configuration()
    found = [option for of_section in sections().values() for option in of_section]
    programs = [f"kernelLsp.{camel(option.name)}" for option in found if option.field.metadata["program"]]
    package["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"] = programs + EXTENSION_PROGRAMS
    return json.dumps(package, indent=2, ensure_ascii=False) + "\n"


def configuration() -> list[dict[str, Any]]:
    """VS Code's sections. Without ``order`` it would sort them, and the settings in them, by their names."""
    contents: dict[str, dict[str, dict[str, Any]]] = {}
    for title, found in sections().items():
        contents[title] = {f"kernelLsp.{camel(option.name)}": _property(option) for option in found}
        contents[title] |= EXTENSION_SETTINGS if title == EXTENSION_SECTION else {}
    return [
        {
            "title": title,
            "order": place,
            "properties": {name: {**shape, "order": i} for i, (name, shape) in enumerate(properties.items())},
        }
        for place, (title, properties) in enumerate(contents.items())
    ]


def _property(option: Option) -> dict[str, Any]:
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string"}
    owner = Settings if not option.group else groups()[option.group]
    kind = typing.get_type_hints(owner)[option.field.name]
    made = option.field.default_factory
    default = made() if made is not dataclasses.MISSING else option.field.default
    doc = option.field.metadata["doc"]
    if kind in kinds:
        shape: dict[str, Any] = {"type": kinds[kind]}
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
        docs / "generated.md": generated_page.page(),
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
