"""Evaluations: every problem of a suite through the same pipeline as one class, and what came of each."""
