"""Verdicts and measurements, looked up by fingerprint (not built yet).

To come: one SQLite database a user, in which every ``schema.Report`` ends; recall of what was verified before, history
of a kernel's times, export. Until then the header of a kernel file is all the memory there is.
"""
