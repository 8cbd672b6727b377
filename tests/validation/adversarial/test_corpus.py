"""Every file of the corpus through the real worker, under the interpreter: none that is bad passes, no honest one is accused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kernel_lsp import schema
from tests.validation.adversarial import corpus
from tests.validation.adversarial.scene import Scene, Workplace

ALL = {name: corpus.read(name) for name in corpus.names()}
HERE = [entry for entry in ALL.values() if not entry.gpu]


@pytest.fixture(scope="session")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workplace]:
    one = Workplace(tmp_path_factory.mktemp("workplace"))
    yield one
    one.close()


@pytest.mark.parametrize("name", corpus.parameters(HERE, "not_yet.txt", corpus.representatives()))
def test_it_gets_what_it_deserves(workplace: Workplace, tmp_path: Path, name: str) -> None:
    examine(workplace, tmp_path, ALL[name], {"device": "interpreter", "seconds": 60, "measure": "none"})


def examine(workplace: Workplace, folder: Path, entry: corpus.Entry, how: dict) -> None:
    """Validate an entry; assert its status, and that no harm was done."""
    scene = Scene(workplace, folder, entry.module)
    if entry.before:
        scene.validate(entry.class_name, entry.before, **how)
    status, answer = scene.validate(entry.class_name, entry.kernel, **{**how, **entry.how})
    harm = scene.harm(answer)
    if entry.harm is not None and (said := entry.harm(answer)):
        harm.append(said)
    verdict = answer.get("verdict") or {}
    said = f"{status}: {verdict.get('reason') or answer.get('error') or ''}"
    assert (status in entry.expected, harm) == (True, []), said


def test_the_corpus_is_whole() -> None:
    honest = [one for one in ALL.values() if one.honest]
    assert len(ALL) - len(honest) >= 90 and len(honest) >= 50
    for one in ALL.values():
        assert one.says.endswith(".") and "\n\n" not in one.says, one.name
        if not one.honest and not one.name.startswith("harm/"):  # there it is the harm that must not be
            assert not one.expected & schema.CORRECT, one.name
    assert corpus.representatives() <= {one.name for one in HERE}
    for file in ("not_yet.txt", "not_yet_gpu.txt"):
        assert not set(corpus.not_yet(file)) - set(ALL), file
