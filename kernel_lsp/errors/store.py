"""The store of what was validated on this machine, its export and import."""

from __future__ import annotations

from .base import UserError


class StoreUnusable(UserError):
    template = "The store of what was validated on this machine could not be {done} ({path}: {detail}). Nothing else is affected: kernels count as not validated here. Mend or delete the file, or name another one (setting store, or KERNEL_LSP_STORE)."


class StoreOff(UserError):
    template = "No store is in use: the setting store is none, or KERNEL_LSP_STORE is empty. Name a file there to keep what is validated."


class StoreLineDamaged(UserError):
    template = "Line {line} of {path} was not imported: {detail}. The other lines were taken; export the store again to get the whole."


class ImportUnreadable(UserError):
    template = "{path} cannot be imported: {detail}. Name a file that kernel-lsp store export wrote."


class ExportNotWritten(UserError):
    template = "{path} could not be written: {detail}. Name a file in a folder that you can write to."
