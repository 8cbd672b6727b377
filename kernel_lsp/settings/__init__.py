"""The options in force for a source file: every option once (``options``), and where they come from (``loading``)."""

from kernel_lsp.settings.loading import load, read_project
from kernel_lsp.settings.options import KernelLLM, LlamaCpp, OpenAI, Option, Settings, camel, groups, kebab, options

__all__ = [
    "KernelLLM",
    "LlamaCpp",
    "OpenAI",
    "Option",
    "Settings",
    "camel",
    "groups",
    "kebab",
    "load",
    "options",
    "read_project",
]
