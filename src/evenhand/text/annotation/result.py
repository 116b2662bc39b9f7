"""What the annotators' verdicts are returned as."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from evenhand.results import Measurement, document, replace_file, to_json

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Annotation", "Judged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A sentence as the filter wrote it, each annotator's verdict, and that of the majority."""

    id: str
    record: Mapping[str, Any]
    verdicts: Mapping[str, Literal["yes", "no"] | None]
    verdict: Literal["yes", "no", "undecided"]

    def as_dict(self) -> dict[str, Any]:
        own = {"id": self.id, "verdict": self.verdict, "verdicts": dict(self.verdicts)}
        return {**self.record, **own}


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """Judged sentences, the share that is structural, and how far the annotators agree.

    `annotators` counts each one's answers, cells left empty and sentences absent from the sheet.
    `agreement` has Fleiss' kappa and Krippendorff's alpha where they can be computed.
    """

    sentences: tuple[Judged, ...] = field(repr=False)
    majority: int
    annotators: Mapping[str, Mapping[str, int]]
    accuracy: Measurement
    agreement: tuple[Measurement, ...]
    notes: tuple[str, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """Sentences by the majority's verdict."""
        found = Counter(one.verdict for one in self.sentences)
        return {
            "sentences": len(self.sentences), "yes": found["yes"], "no": found["no"],
            "undecided": found["undecided"],
        }  # fmt: skip

    def as_dict(self) -> dict[str, Any]:
        """The JSON view, without the sentences."""
        return document(
            counts=self.counts,
            majority=self.majority,
            annotators={name: dict(tally) for name, tally in self.annotators.items()},
            measurements=[m.as_dict() for m in (self.accuracy, *self.agreement)],
            notes=list(self.notes),
        )

    def to_frame(self) -> pd.DataFrame:
        """A row a sentence, a column an annotator."""
        import pandas as pd

        return pd.DataFrame(
            [
                {"id": one.id, **one.record, **one.verdicts, "verdict": one.verdict}
                for one in self.sentences
            ]
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the sentences with their verdicts as JSONL, whole or not at all."""
        with replace_file(path) as file:
            file.writelines(
                f"{to_json(one.as_dict(), indent=None)}\n".encode() for one in self.sentences
            )

    def __str__(self) -> str:
        return "\n".join(str(m) for m in (self.accuracy, *self.agreement))
