"""What is remembered from one run to the next, in one SQLite file a user (``database.py``).

``validations.py``: what was validated on this machine, which tells a proof from what a kernel file only says.
``baselines.py``: kept times of eager and torch.compile.
"""
