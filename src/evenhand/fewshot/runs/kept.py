"""What a classifier said to the test queries and to their twins, in one file that needs no data."""

from __future__ import annotations

import io
import os
import struct
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import FileError, InputError
from evenhand.fewshot.bias import Twins
from evenhand.fewshot.statistics import Answers
from evenhand.fewshot.statistics_replicates import Ints
from evenhand.results import replace_file

__all__ = ["Kept"]

ARRAYS = {"log_probs", "rows", "truth", "classes", "genders", "names", "leaning", "swapped"}


@dataclass(frozen=True, eq=False)
class Kept:
    """The answers to the test queries, the log-probabilities of their twins where there are some,
    and which gender each class leans to (0 male, 1 female, -1 neither).
    """

    answers: Answers
    swapped: NDArray[np.floating[Any]] | None = field(repr=False)
    leaning: Ints = field(repr=False)

    def __post_init__(self) -> None:
        said, swapped = self.answers, self.swapped
        if np.shape(self.leaning) != (len(said.names),):
            raise InputError(
                f"leaning: expected one for each of {len(said.names)} classes, got the shape "
                f"{np.shape(self.leaning)}"
            )
        if swapped is not None and swapped.shape != said.log_probs.shape:
            raise InputError(
                f"swapped: expected the shape {said.log_probs.shape} of the answers, got "
                f"{swapped.shape}"
            )

    @property
    def twins(self) -> Twins | None:
        """The answers with those of the twins; None where no bias can be measured, since no query
        is of known gender in a class that leans.
        """
        asked = np.take_along_axis(self.answers.classes, self.answers.truth, axis=1)
        used = (self.answers.genders >= 0) & (self.leaning[asked] >= 0)
        if self.swapped is None or not used.any():
            return None
        return Twins.of(self.answers, self.swapped, self.leaning)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an .npz file, whole or not at all."""
        said = self.answers
        arrays: dict[str, Any] = {
            "log_probs": said.log_probs.astype(np.float32), "rows": said.rows, "truth": said.truth,
            "classes": said.classes, "genders": said.genders, "names": np.array(said.names),
            "leaning": self.leaning,
            "swapped": np.array(() if self.swapped is None else self.swapped, dtype=np.float32),
        }  # fmt: skip
        with replace_file(path) as file:
            np.savez(file, **arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Kept:
        """Read what `save` wrote; a file that is damaged or of something else is an error."""
        content = io.BytesIO(Path(path).read_bytes())
        try:
            with np.load(content, allow_pickle=False) as file:
                if file.zip.testzip() or set(file.files) != ARRAYS:
                    raise InputError("damaged, its check sums or names are wrong")
                answers = Answers(
                    file["log_probs"], file["rows"], file["truth"], file["classes"],
                    file["genders"], tuple(file["names"].tolist()),
                )  # fmt: skip
                swapped = file["swapped"]
                return cls(answers, swapped if swapped.size else None, file["leaning"])
        except (ValueError, LookupError, TypeError, OSError, EOFError, RuntimeError, MemoryError,
                struct.error, zlib.error, zipfile.BadZipFile) as error:  # fmt: skip
            raise FileError(path, f"expected the answers of a few-shot run: {error}") from None
