"""Confining a candidate's process: what it may read, write, start and reach. Linux; the standard library alone.

``layers`` says which layers this system has, ``entering`` puts a process behind all of them, and each other file is one layer.
A confined process can undo none of it.
"""
