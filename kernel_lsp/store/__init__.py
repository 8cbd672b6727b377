"""What is remembered from one run to the next: kept times of baselines (``baselines.py``).

To come in the same database: every ``schema.Report``, so that what was verified before is recalled and a kernel's
times have a history. Until then the header of a kernel file is all the memory there is of a kernel.
"""
