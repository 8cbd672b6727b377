"""The titles of code actions and of jobs, and the choices in a question."""

from __future__ import annotations

GET_MODEL = "Get KernelLLM, a language model that writes kernels"
_JOBS = {"generate": "Generating", "validate": "Validating", "restore": "Restoring the faster"}


def job_title(kind: str, class_name: str) -> str:
    """What stands above the progress of a job."""
    return f"{_JOBS[kind]} Triton kernel for {class_name}"


def generate_title(name: str) -> str:
    """The code action that generates a kernel; ``name``: of the class."""
    return f"Generate Triton kernel for {name}"


def regenerate_title(name: str) -> str:
    """The quick fix for a kernel that is out of date; ``name``: of the class."""
    return f"Regenerate Triton kernel for {name}"


def validate_title(name: str) -> str:
    """The code action that validates a kernel; ``name``: of the class."""
    return f"Validate Triton kernel for {name}"


def show_change_title(name: str) -> str:
    """The code action that compares a regressed kernel with the faster one; ``name``: of the class."""
    return f"Show what changed in the Triton kernel for {name}"


def restore_title(name: str) -> str:
    """The code action that puts the faster kernel back; ``name``: of the class."""
    return f"Restore the faster Triton kernel for {name}"
