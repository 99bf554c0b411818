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
        self.argument, self.got, self.needs = argument, got, needs


class InfeasibleError(AttnMarginError):
    """No W satisfies the rows of a problem."""


class InaccurateError(AttnMarginError):
    """A solution whose certified gap is above its tolerance."""


class MissingPackageError(AttnMarginError, ImportError):
    """An optional package is missing; the sentence has the install line."""

    def __init__(self, what: str, install: str) -> None:
        super().__init__(f'{what} needs a package that is missing: pip install "{install}"')
