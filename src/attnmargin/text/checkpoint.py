"""Checkpoints of a run: tensors and record in one file, from which a stopped run resumes."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, final

from torch import Tensor

from attnmargin.base.errors import InputError
from attnmargin.base.files import make_folder, write_whole
from attnmargin.base.safetensors import read_tensors, write_tensors

Record = dict[str, Any]
# One row per epoch.
History = list[dict[str, float]]
# Settings that must agree for two runs to be the same; the number of epochs may grow.
_SETTINGS = ("shape", "recipe")


@final
@dataclass(frozen=True)
class Checkpoint:
    """A folder with ``model.safetensors``, which holds everything, and ``run.json``, for humans.

    A record has ``recipe``, ``history``, ``shape`` if the model has one, and ``data``, a digest of
    the texts.
    """

    folder: Path

    @classmethod
    def at(cls, out: str | Path) -> Self:
        """Open the folder of a run; create it if it is missing."""
        return cls(make_folder(out, "out"))

    @property
    def path(self) -> Path:
        """The file that holds tensors and record."""
        return self.folder / "model.safetensors"

    def save(self, tensors: dict[str, Tensor], record: Record) -> None:
        """Write tensors and record atomically, then a copy of the record."""
        text = json.dumps(record, indent=1)
        write_tensors(self.path, tensors, {"run": text})
        write_whole(self.folder / "run.json", lambda stream: stream.write(f"{text}\n".encode()))

    def load(self, own: Record) -> tuple[dict[str, Tensor], History] | None:
        """Read tensors and history of the run with record ``own``; None if there is no checkpoint.

        Raises:
            InputError: the folder holds another run, or the file is not a checkpoint.
        """
        if not self.path.is_file():
            return None
        tensors, notes = read_tensors(self.path)
        try:
            record = json.loads(notes["run"])
            self._refuse_another(own, record)
            return tensors, _history(record)
        except InputError:
            raise
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise self.unfit(error) from None

    def unfit(self, error: Exception) -> InputError:
        """Explain in one sentence why the file is not a checkpoint of this run."""
        reason = " ".join(str(error).split())[:60]
        if isinstance(error, KeyError):
            reason = f"without {reason}"
        return InputError("out", f"{self.path} ({reason})", "a checkpoint of such a run")

    def _refuse_another(self, own: Record, other: Record) -> None:
        """Raise InputError if two runs differ in more than the number of their epochs."""
        parts = [part for part in _SETTINGS if part in own]
        mine, theirs = (_settings(record, parts) for record in (json.loads(json.dumps(own)), other))
        found = sorted(key for key in mine if key != "epochs" and mine[key] != theirs.get(key))
        if found:
            got = f"{self.folder}, a run with another {', '.join(found)}"
            raise InputError("out", got, "an empty folder, or one of the same run")


def _settings(record: Record, parts: list[str]) -> Record:
    """Collect the settings that a run depends on, by name."""
    found: Record = {"corpus": record.get("data")}
    for part in parts:
        found |= record[part]
    return found


def _history(record: Record) -> History:
    rows = record["history"]
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise TypeError("a history that is no list of epochs")
    return rows
