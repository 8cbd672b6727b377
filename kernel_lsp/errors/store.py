"""The store of what was validated on this machine, its export and import."""

from __future__ import annotations

from .base import UserError


class StoreUnusable(UserError):
    """SQLite could not open, read or write the store; ``done``: which, as a participle."""

    template = "The store of what was validated on this machine could not be {done} ({path}: {detail}). Nothing else is affected: kernels count as not validated here. Mend or delete the file, or name another one (setting store, or KERNEL_LSP_STORE)."


class StoreOff(UserError):
    """A command about the store was run where none is used."""

    template = "No store is in use: the setting store is none, or KERNEL_LSP_STORE is empty. Name a file there to keep what is validated."


class StoreLineDamaged(UserError):
    """A line of an export has not the form of a row; told for each, and the import goes on."""

    template = "Line {line} of {path} was not imported: {detail}. The other lines were taken; export the store again to get the whole."


class ImportUnreadable(UserError):
    """The file cannot be read, or its first line is not that of an export of a known version."""

    template = "{path} cannot be imported: {detail}. Name a file that kernel-lsp store export wrote."


class ExportNotWritten(UserError):
    """The file of an export could not be written."""

    template = "{path} could not be written: {detail}. Name a file in a folder that you can write to."


class NothingToPrune(UserError):
    """``store prune`` was given neither an age nor a number."""

    template = "Nothing says what to remove. Give --older-than DAYS, --keep N, or both."
