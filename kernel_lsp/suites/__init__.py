"""Suites: folders of problems, read without running them."""
