"""The ways of making a namespace in place of Landlock, for tests of each."""

from __future__ import annotations

import os

import pytest

from kernel_lsp.confinement import namespace

#: way of making one → the layers that are taken for missing then
WITHOUT = {namespace.AS_ROOT: "landlock", namespace.AS_USER: f"landlock,namespace {namespace.AS_ROOT}"}

#: the same as parameters of a fixture: the way that this user's workers would take, and for make test-corpus the other one
WAYS = [
    pytest.param(way, marks=[] if (way == namespace.AS_ROOT) == (os.getuid() == 0) else pytest.mark.corpus)
    for way in WITHOUT
]


def needs(way: str) -> None:
    if not namespace.way([way]):
        pytest.skip(f"no namespace can be made {way} here")
