"""Whether a candidate computes what the module does, and how long both take: oracle, checks, timing; docs/validation.md."""
