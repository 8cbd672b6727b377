"""The ways of making a namespace in place of Landlock, for tests of each."""

from __future__ import annotations

import pytest

from kernel_lsp.confinement import namespace

#: way of making one → the layers that are taken for missing then
WITHOUT = {namespace.AS_ROOT: "landlock", namespace.AS_USER: f"landlock,namespace {namespace.AS_ROOT}"}


def needs(way: str) -> None:
    if not namespace.way([way]):
        pytest.skip(f"no namespace can be made {way} here")
