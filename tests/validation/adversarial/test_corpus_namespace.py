"""The harmful and the honest part of the corpus without Landlock: a root folder of its own keeps a kernel from the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.confinement.namespaces import WAYS, WITHOUT, needs
from tests.validation.adversarial import corpus
from tests.validation.adversarial.scene import Workplace
from tests.validation.adversarial.test_corpus import HERE, examine

pytestmark = pytest.mark.slow

#: those that are about files: of the others nothing is different here
FAST = {"harm/deletes", "harm/reads_through_a_new_thread", "honest/in_place"}


@pytest.fixture(scope="session", params=WAYS)
def workplace(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workplace]:
    needs(request.param)
    one = Workplace(tmp_path_factory.mktemp("workplace"), WITHOUT[request.param])
    yield one
    one.close()


@pytest.mark.parametrize(
    "name",
    corpus.parameters([one for one in HERE if one.name.startswith(("harm/", "honest/"))], "not_yet.txt", FAST),
)
def test_it_gets_what_it_deserves_without_landlock(workplace: Workplace, tmp_path: Path, name: str) -> None:
    examine(workplace, tmp_path, corpus.read(name), {"device": "interpreter", "seconds": 60, "measure": "none"})
