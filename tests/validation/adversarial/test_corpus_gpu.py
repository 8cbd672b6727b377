"""Every file of the corpus on a CUDA GPU, timed: what only a GPU shows is here as well."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.validation.adversarial import corpus
from tests.validation.adversarial.scene import Workplace
from tests.validation.adversarial.test_corpus import ALL, examine

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="session")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workplace]:
    one = Workplace(tmp_path_factory.mktemp("workplace"))
    yield one
    one.close()


@pytest.mark.parametrize("name", corpus.parameters(list(ALL.values()), "not_yet_gpu.txt"))
def test_it_gets_what_it_deserves_on_a_gpu(workplace: Workplace, tmp_path: Path, name: str) -> None:
    examine(workplace, tmp_path, ALL[name], {"device": "cuda", "seconds": 60, "measure": "eager"})
