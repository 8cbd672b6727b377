"""Without Landlock a right kernel is validated and timed on a GPU in a root folder of its own, and a wrong one does no harm."""

from __future__ import annotations

import pytest

from tests.confinement.attacks import KERNEL, MODULE
from tests.confinement.conftest import Victim
from tests.confinement.namespaces import WITHOUT, needs
from tests.confinement.test_files import WRITES, attacked
from tests.confinement.waiting import wait_until

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module", params=WITHOUT)
def victim(request, tmp_path_factory):
    needs(request.param)
    found = Victim(tmp_path_factory.mktemp("without-landlock"), WITHOUT[request.param])
    yield found
    found.close()


def attack(victim, code, **facts):
    """(the verdict, what the attack said)."""
    said = len(victim.said())
    verdict = victim.attack(code, device="cuda", seconds=120, **facts)
    assert verdict["status"] in ("ok", "slower"), verdict["reason"]
    assert wait_until(lambda: victim.said()[said:], 3), "the attack has run"
    return verdict, victim.said()[said:]


def test_a_right_kernel_is_validated_and_timed(victim):
    path = victim.project / "victim.py"
    path.write_text(MODULE.replace("BODY", "pass"))
    given = {"class_name": "Scale", "source": KERNEL, "device": "cuda", "seconds": 180, "measure": "eager"}
    result = victim.worker.call("validate", timeout=240, path=str(path), **given)
    assert result["verdict"]["status"] in ("ok", "slower"), result["verdict"]["reason"]
    (shape,) = result["measurement"]["shapes"]
    assert all(shape[way]["median"] > 0 for way in ("eager", "kernel")), result["measurement"]
    assert "began before it was confined" not in victim.worker.stderr
    print("limits:", result["verdict"]["limits"])


def test_memory_of_the_device_is_shared_with_it(victim):
    """Nothing of the confinement is left out for the driver."""
    verdict, told = attack(victim, "tell('sees', sorted(os.listdir('/')), os.path.exists('/usr/bin/env'))")
    assert not any("the GPU's driver" in limit for limit in verdict["limits"]), verdict["limits"]
    assert not any("while it was validated" in limit for limit in verdict["limits"]), verdict["limits"]
    assert any("sees" in line and "'dev'" in line and line.endswith("False") for line in told), told


def test_nothing_of_the_users_is_changed(victim):
    attack(victim, "pass")  # the driver's and triton's caches in the home folder are the referee's
    _, changed = attacked(victim, WRITES, device="cuda", seconds=120)
    assert changed == set()


def test_no_secret_is_read(victim):
    _, told = attack(victim, "tell(open(os.path.join(home, '.ssh', 'id_test')).read())", home=str(victim.home))
    assert told and not any("secret" in line for line in told), told


def test_no_program_but_the_compilers_is_started(victim):
    for program in ("/usr/bin/env", "/bin/cp", "/bin/cat"):
        _, told = attack(victim, f"subprocess.run([{program!r}, '--version']); tell('harm')")
        assert told and "attack: harm" not in told, told
