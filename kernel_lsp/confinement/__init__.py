"""Confining a candidate's process: what it may read, write, start and reach. Linux; the standard library alone.

``layers`` says what this system has, ``entering`` puts a process behind all of it, and each other file is one layer.
Nothing here can be undone by the process that it is done to.
"""
