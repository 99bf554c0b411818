"""The errors of attnmargin.

AttnMarginError
├── InputError           an argument or a file is invalid (also a ValueError)
├── InfeasibleError      no W satisfies the rows; the message names the contradicting rows
├── InaccurateError      the certificate missed its tolerance
└── MissingPackageError  an optional package is not installed (also an ImportError)
"""


def one_line(text: str) -> str:
    r"""Escape line breaks, and characters that would command a terminal.

    >>> one_line("two\nlines, \x1b[31mred, naïve")
    'two\\nlines, \\x1b[31mred, naïve'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


class AttnMarginError(Exception):
    """Base class of all errors that attnmargin raises on purpose."""


class InputError(AttnMarginError, ValueError):
    """An invalid argument; the message says which one, what it got and what it needs."""

    def __init__(self, argument: str, got: str, needs: str) -> None:
        parts = (_short(one_line(part)) for part in (argument, got, needs))
        super().__init__("{}: got {}; needs {}".format(*parts))
        self.argument, self.got, self.needs = argument, got, needs

    def __reduce__(self) -> tuple[type["InputError"], tuple[str, str, str]]:
        """Pickle the three parts, so that the error can leave a process."""
        return type(self), (self.argument, self.got, self.needs)


def _short(text: str) -> str:
    """Leave out the middle of what is too long for a sentence."""
    most = 450
    return text if len(text) <= most else f"{text[: most // 2]}…{text[-most // 2 :]}"


class InfeasibleError(AttnMarginError):
    """No W satisfies the rows of a problem."""


class InaccurateError(AttnMarginError):
    """A solution whose certified gap is above its tolerance."""


class MissingPackageError(AttnMarginError, ImportError):
    """An optional package is missing; the message says how to install it."""

    def __init__(self, what: str, install: str) -> None:
        super().__init__(f'{what} needs a package that is missing: pip install "{install}"')
