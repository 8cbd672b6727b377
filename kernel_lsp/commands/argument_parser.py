"""The parser of the command line: of a word that it does not know it says which one may have been meant."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from kernel_lsp import nearest

_MISSING = "the following arguments are required"
_CHOICE = re.compile(r"invalid choice: '?(?P<word>[^' ]+)'? \(choose from (?P<choices>[^()]*)\)")


class Parser(argparse.ArgumentParser):
    """argparse's parser, which looks for the nearest option, command or choice; what it prints else is argparse's."""

    _given: Sequence[str] = ()

    def parse_known_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        """As argparse's. What is parsed is kept for messages."""
        self._given = list(sys.argv[1:] if args is None else args)
        return super().parse_known_args(args, namespace)

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        """As argparse's, but an option that there is not is refused by the command that it was given to."""
        options, rest = self.parse_known_args(args, namespace)
        if rest:
            self._innermost(options)._refuse(rest)
        return options

    def error(self, message: str) -> NoReturn:
        """Print the usage and ``message``, with the nearest of the choices where it is about one, and end with status 2.

        Of a misspelt option that stands alone it is that, and not the argument that is missing: ``kernel-lsp --vresion``.
        """
        misspelt = _options(self._given) if message.startswith(_MISSING) else []
        if misspelt := [word for word in misspelt if self._near(word)]:
            message = f"unrecognized arguments: {' '.join(misspelt)}{self._near(misspelt[0])}"
        found = _CHOICE.search(message)
        if found is not None:
            message += nearest.hint(found["word"], re.findall(r"[\w.-]+", found["choices"]))
        super().error(message)

    def _innermost(self, options: Any) -> Parser:
        """The parser of the command, and of its action, that ``options`` name."""
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                chosen = action.choices.get(getattr(options, action.dest, ""))
                return self if chosen is None else chosen._innermost(options)
        return self

    def _refuse(self, rest: Sequence[str]) -> NoReturn:
        hints = (self._near(word) for word in _options(rest))
        self.error(f"unrecognized arguments: {' '.join(rest)}" + next(filter(None, hints), ""))

    def _near(self, word: str) -> str:
        """The nearest option of this command, as a message ends; "" where ``word`` is one itself, or near to none."""
        name = word.partition("=")[0]
        known = [one for one in self._option_string_actions if one.startswith("--")]
        return "" if any(one.startswith(name) for one in known) else nearest.hint(name, known)


def _options(words: Sequence[str]) -> list[str]:
    """Those of the words that are written as options."""
    return [word for word in words if word.startswith("-")]
