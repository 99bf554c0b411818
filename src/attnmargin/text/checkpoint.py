"""Checkpoints of a run: tensors and record in one file, from which a stopped run resumes."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, final

from torch import Tensor

from attnmargin.base.errors import InputError
from attnmargin.base.files import make_folder, own_place, write_whole
from attnmargin.base.safetensors import read_notes, read_tensors, write_tensors
from attnmargin.base.temporary import lock

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
        """Write tensors and record atomically, then a copy of the record.

        Several processes may train the same run: the checkpoint with the most epochs stays.

        Raises:
            InputError: another process began another run in the folder meanwhile.
        """
        with self._alone():
            if self._epochs_ahead(record):
                return
            text = json.dumps(record, indent=1)
            write_tensors(own_place(self.folder, self.path.name), tensors, {"run": text})
            self._copy(text)

    def load(self, own: Record) -> tuple[dict[str, Tensor], History] | None:
        """Read tensors and history of the run with record ``own``; None if there is no checkpoint.

        Raises:
            InputError: the folder holds another run, or the file is not a checkpoint.
        """
        if not self.path.is_file():
            return None
        with self._alone():
            tensors, notes = read_tensors(self.path)
            record = self._record(own, notes)
            with suppress(InputError):  # what only is to be read may lie where nobody writes
                self._copy(notes["run"])
        return tensors, record["history"]

    def _record(self, own: Record, notes: dict[str, str]) -> Record:
        """Read the record in the notes of a file; raise InputError unless it is of the same run."""
        try:
            record = json.loads(notes["run"])
            self._refuse_another(own, record)
            _check_history(record["history"])
            return dict(record)
        except InputError:
            raise
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise self.unfit(error) from None

    def _epochs_ahead(self, own: Record) -> bool:
        """Test whether the folder holds the same run with as many epochs, or more."""
        if not self.path.is_file():
            return False
        other = self._record(own, read_notes(self.path))
        return 0 < len(own["history"]) <= len(other["history"])

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other processes from reading and writing in the folder."""
        try:
            handle = os.open(self.folder, os.O_RDONLY)
        except OSError as error:
            got = f"{self.folder} ({error.strerror})"
            raise InputError("out", got, "the folder of the run") from None
        try:
            lock(handle, wait=True)
            yield
        finally:
            os.close(handle)

    def _copy(self, text: str) -> None:
        """Write ``run.json`` unless it holds this text: a kill can come between both files."""
        path, data = self.folder / "run.json", f"{text}\n".encode()
        if not (path.is_file() and path.read_bytes() == data):
            write_whole(own_place(self.folder, path.name), lambda stream: stream.write(data))

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


def _check_history(rows: Any) -> None:
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise TypeError("a history that is no list of epochs")
