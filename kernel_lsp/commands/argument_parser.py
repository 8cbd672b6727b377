"""The parser of the command line: of a word that it does not know it says which one may have been meant."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Sequence
from typing import Any, NoReturn

_CHOICE = re.compile(r"invalid choice: '?(?P<word>[^' ]+)'? \(choose from (?P<choices>[^()]*)\)")


class Parser(argparse.ArgumentParser):
    """argparse's parser, which looks for the nearest option, command or choice; what it prints else is argparse's."""

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        """As argparse's, but an option that there is not is refused by the command that it was given to."""
        options, rest = self.parse_known_args(args, namespace)
        if rest:
            self._innermost(options)._refuse(rest)
        return options

    def error(self, message: str) -> NoReturn:
        """Print the usage and ``message``, with the nearest of the choices where it is about one, and end with status 2."""
        found = _CHOICE.search(message)
        if found is not None:
            message += _hint(found["word"], re.findall(r"[\w.-]+", found["choices"]))
        super().error(message)

    def _innermost(self, options: Any) -> Parser:
        """The parser of the command, and of its action, that ``options`` name."""
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                chosen = action.choices.get(getattr(options, action.dest, ""))
                return self if chosen is None else chosen._innermost(options)
        return self

    def _refuse(self, rest: Sequence[str]) -> NoReturn:
        known = [name for name in self._option_string_actions if name.startswith("--")]
        words = (word.partition("=")[0] for word in rest if word.startswith("-"))
        hints = (_hint(word, known) for word in words)
        self.error(f"unrecognized arguments: {' '.join(rest)}" + next(filter(None, hints), ""))


def _hint(word: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {near[0]}?" if near else ""
