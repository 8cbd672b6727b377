"""Running all problems of a benchmark suite, and what comes of it: records, scores, tables."""
