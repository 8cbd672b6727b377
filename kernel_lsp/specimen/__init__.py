"""A user's class as the worker sees it: imported, constructed with its example, run and exported.

modules and importing (the file under its proper name) → examples, recorded (what it is called with) → building, faking
(constructed and run, without memory where that does) → exporting (its graph) → looking (all of it in order); specs and
graphs say it on the wire, faults in the user's words.
"""
