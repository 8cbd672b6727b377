"""Modules that assign under a mask, on the command line: those that get a kernel, and what is said of the others."""

import json
import subprocess
from pathlib import Path

import pytest

from tests import nursery

MODULES = """
import torch


class Points(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("gaussian", torch.randn(2, 16))
        self.not_a_point = torch.nn.Embedding(1, 32)
        self.point_embeddings = torch.nn.ModuleList([torch.nn.Embedding(1, 32) for _ in range(2)])

    def forward(self, points, labels):
        points = torch.cat([points + 0.5, torch.zeros(points.shape[0], 1, 2, device=points.device)], dim=1)
        labels = torch.cat([labels, -torch.ones(labels.shape[0], 1, device=labels.device)], dim=1)
        coords = 2 * torch.pi * ((points - 1) @ self.gaussian)
        point_embedding = torch.cat([coords.sin(), coords.cos()], dim=-1)
        point_embedding[labels == -1] = 0.0
        point_embedding[labels == -1] += self.not_a_point.weight
        point_embedding[labels == 0] += self.point_embeddings[0].weight
        point_embedding[labels == 1] += self.point_embeddings[1].weight
        return point_embedding


class GIoU(torch.nn.Module):
    def forward(self, points, labels):
        a, b = points[:, 0:4:2].flatten(1), points[:, 1:5:2].flatten(1)
        size = torch.min(a[:, 2:], b[:, 2:]) - torch.max(a[:, :2], b[:, :2])
        valid = (size > 0).all(dim=1)
        overlap = torch.zeros_like(a[:, 0])
        overlap[valid] = size[valid][:, 0] * size[valid][:, 1]
        area = (a[:, 2:] - a[:, :2]).prod(1) + (b[:, 2:] - b[:, :2]).prod(1) - overlap
        mask = area <= 0
        area[mask] = 1.0
        ratio = overlap / area
        ratio[mask] -= 1.0
        return ratio


class Mean(torch.nn.Module):
    def forward(self, points, labels):
        return points[labels > 0].mean()


class Argument(torch.nn.Module):
    def forward(self, points, labels):
        points[labels > 0] *= 2.0
        return points.sum(-1)


def get_inputs():
    return [torch.rand(6, 7, 2), torch.randint(-1, 2, (6, 7)).float()]
"""


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_assignments_under_a_mask_have_kernels(tmp_path: Path) -> None:
    (tmp_path / "masks.py").write_text(MODULES)
    command = [*nursery.CLI, "generate", "masks.py", "--json", "--device", "interpreter"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    reports = {report["target"]["class_name"]: report for report in json.loads(done.stdout)["reports"]}
    for name in ("Points", "GIoU"):
        one = reports[name]
        assert one["chosen"] is not None, (one["error"], done.stderr)
        chosen = one["candidates"][one["chosen"]]
        assert chosen["verdict"]["status"] == "ok" and not chosen["candidate"]["kept"]
    said = {name: json.dumps(reports[name]["error"]) for name in ("Mean", "Argument")}
    assert "the size of its result depends on the data" in said["Mean"] and "labels > 0" in said["Mean"]
    assert "forward changes points" in said["Argument"]
