"""Validations for the tests of the store."""

import dataclasses

from kernel_lsp import __version__, class_schema, kernel_file, schema
from kernel_lsp.store import validations
from kernel_lsp.store.targets import target_of
from kernel_lsp.store.validations import About, Key, Validation

DEVICE = schema.Device("Test GPU", "cuda", "9.0", torch="2.11.0", triton="3.6.0", driver="580.1")
BODY = "# a kernel\n"
KEY = Key("sha256:class", kernel_file.body_hash(BODY), "Test GPU", "2.11.0", "3.6.0", __version__, "580.1")


def timing(median):
    return schema.Timing(median, median - 1, median + 1, 50)


def found(day=1, status="ok", kernel=50.0, error=1e-7, reason=""):
    """A validation on a day of January 2026."""
    verdict = schema.Verdict(status, reason, mode="gpu", checks=[schema.Check("odd sizes", status == "ok", "3×5")])
    verdict.error, verdict.eager_error, verdict.skipped = error, 2e-7, ["more seeds"]
    shape = schema.ShapeMeasurement([class_schema.TensorSpec("x", [8, 32], "float32")], timing(100.0), timing(75.0))
    shape.kernel = timing(kernel)
    return Validation(verdict, schema.Measurement([shape], DEVICE), DEVICE, f"2026-01-{day:02}T03:04:05+00:00")


def about(file, root, class_name="Norm", source=BODY, graph=None):
    target = target_of(file, root, class_name, "")
    return About(target, source, "synthesizer", "3 of 3 ops", settings={"seconds": 300.0}, graph=graph)


def keep(path, validation, file, root, source=BODY, class_name="Norm", graph=None, **other):
    """Keep a validation. ``other``: parts of its key."""
    key = dataclasses.replace(KEY, body=kernel_file.body_hash(source), **other)
    validations.keep(key, validation, path, about(file, root, class_name, source, graph))
    return key
