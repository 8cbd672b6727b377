"""The synthesizer's replayed candidates through the real worker: validated in full, timed beside direct launches."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.gpu, pytest.mark.alone, pytest.mark.timeout(600)]  # it times

MODULES = {
    "Perceptron": """
class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(10))
    def forward(self, x):
        for layer in self.layers:
            x = F.gelu(layer(x))
        return x
def get_inputs(): return [torch.randn(3, 64)]
""",
    "Residual": """
class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(16, 16, 3, padding=1, bias=False) for _ in range(6))
        self.norms = nn.ModuleList(nn.BatchNorm2d(16) for _ in range(6))
    def forward(self, x):
        for conv, norm in zip(self.convs, self.norms):
            x = F.relu(norm(conv(x))) + x
        return x.mean((2, 3))
def get_inputs(): return [torch.randn(2, 16, 8, 8)]
""",
}


@pytest.fixture(params=list(MODULES))
def asked(request, tmp_path):
    path = tmp_path / "module.py"
    path.write_text("import torch\nimport torch.nn.functional as F\nfrom torch import nn\n" + MODULES[request.param])
    return {"path": str(path), "class_name": request.param, "device": "cuda"}


def test_each_replayed_candidate_is_right_and_has_its_launches_counted(worker, asked):
    candidates = worker.call("synthesize", timeout=300, seconds=300, **asked)["candidates"]
    replayed = [one for one in candidates if one["variant"].endswith("replayed as a CUDA graph")]
    assert len(replayed) >= (2 if asked["class_name"] == "Residual" else 1)
    launched, right = {one["variant"]: one for one in candidates}, 0
    for one in replayed:
        direct = launched.get(one["variant"].removesuffix("replayed as a CUDA graph").removesuffix(", "))
        if direct is None:  # where its launches would take much longer, it is offered of the first arithmetic alone
            continue
        found, statuses = {}, {}
        for name, candidate in (("direct", direct), ("replayed", one)):
            answer = worker.call(
                "validate",
                timeout=300,
                source=candidate["source"],
                measure="eager",
                seconds=200,
                thorough=True,
                **asked,
            )
            verdict = answer["verdict"]
            statuses[name] = verdict["status"] in ("ok", "slower"), verdict["reason"]
            if not statuses[name][0]:
                continue
            (launches,) = [check["detail"] for check in verdict["checks"] if check["name"] == "launches"]
            found[name] = launches
            measurement = answer["measurement"]
            assert measurement["shapes"][0]["kernel"], measurement["missing"]
        # TF32, where torch does not take it for such a small module, is refused either way.
        assert statuses["direct"][0] == statuses["replayed"][0], statuses
        if statuses["direct"][0]:
            assert found["direct"] == found["replayed"], "what a graph has captured counts as if it were launched"
            right += 1
    assert right


def test_it_is_timed_beside_direct_launches_and_the_winner_is_validated(worker, asked):
    candidates = worker.call("synthesize", timeout=300, seconds=300, **asked)["candidates"]
    result = worker.call("tune", timeout=400, sources=[c["source"] for c in candidates], seconds=300, **asked)
    verdict = result["verdicts"][str(result["fastest"])]
    assert verdict["status"] in ("ok", "slower"), verdict["reason"]
    tried = {candidate["variant"]: one for candidate, one in zip(candidates, result["tried"], strict=True)}
    replayed = [variant for variant in tried if variant.endswith("replayed as a CUDA graph")]
    for variant in replayed:
        direct = tried.get(variant.removesuffix("replayed as a CUDA graph").removesuffix(", "))
        if direct is not None:
            assert bool(tried[variant]["timing"]) == bool(direct["timing"]), (variant, tried[variant]["reason"])
    assert any(tried[variant]["timing"] and not tried[variant]["reason"] for variant in replayed)
