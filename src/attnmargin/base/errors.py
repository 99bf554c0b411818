"""The errors of attnmargin.

AttnMarginError
├── InputError           an argument or a file is not what it must be (also a ValueError)
├── InfeasibleError      no W satisfies the rows; the message names the rows that contradict
├── InaccurateError      the certificate did not reach its tolerance
└── MissingPackageError  an optional package is not installed (also an ImportError)
"""


class AttnMarginError(Exception):
    """Base of all errors that attnmargin raises on purpose."""


class InputError(AttnMarginError, ValueError):
    """One sentence: which argument, what it got, what it needs."""

    def __init__(self, argument: str, got: str, needs: str) -> None:
        super().__init__(f"{argument}: got {got}; needs {needs}")


def check_whole(least: int = 1, /, **values: object) -> None:
    """Refuse values that are not whole numbers of at least ``least``, by their names."""
    for name, value in values.items():
        if not isinstance(value, int) or value < least:
            raise InputError(name, repr(value), f"a whole number of at least {least}")


def check_kind(argument: str, value: object, kind: type) -> None:
    """Refuse what is not of a class of the library."""
    if not isinstance(value, kind):
        got = f"a {type(value).__name__}"
        raise InputError(argument, got, f"an instance of am.{kind.__name__}")


def check_number(argument: str, value: object, needs: str) -> float:
    """A value as a float, refused if it is none."""
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError, RuntimeError):
        raise InputError(argument, f"{value!r:.80}", needs) from None


class InfeasibleError(AttnMarginError):
    """No W satisfies the rows of a problem."""


class InaccurateError(AttnMarginError):
    """A solution whose certified gap is above its tolerance."""


class MissingPackageError(AttnMarginError, ImportError):
    """An optional package is missing; the sentence has the install line."""

    def __init__(self, what: str, install: str) -> None:
        super().__init__(f'{what} needs a package that is missing: pip install "{install}"')
