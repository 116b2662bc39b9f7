"""What `biographies` returns: texts, labels, recorded genders, exact twins, and the truth."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evenhand.results import replace_file

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Biographies"]

COLUMNS = ("hard_text", "profession", "gender")
"""The column names of Bias in Bios (De-Arteaga et al. 2019)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Biographies:
    """Simulated biographies, one a row of each tuple, grouped by the occupation they are of.

    `occupations` are the labels, wrong at the rate of the label noise; `written_for` is the truth.
    `genders` are the recorded ones, `told` the ones the texts tell of ("F" or "M"), `twins` the
    same texts telling of the other gender.
    """

    texts: tuple[str, ...] = field(repr=False)
    occupations: tuple[str, ...] = field(repr=False)
    genders: tuple[str, ...] = field(repr=False)
    twins: tuple[str, ...] = field(repr=False)
    written_for: tuple[str, ...] = field(repr=False)
    told: tuple[str, ...] = field(repr=False)
    share_of_women: Mapping[str, float]
    leak: float
    shares: float
    wording: float
    label_noise: float
    seed: int

    @property
    def classes(self) -> tuple[str, ...]:
        """The occupations, in the order of `share_of_women`."""
        return tuple(self.share_of_women)

    @property
    def pull(self) -> dict[str, float]:
        r"""The true bias: how far the gendered words speak for each occupation.

        $\log p(x_F \mid c) - \log p(x_M \mid c)$ for a text $x$ told of a woman and of a man: the
        log-odds of a woman being told of in occupation $c$, with
        $p = 1/2 + \mathrm{leak}\,(\mathrm{share}_c - 1/2)$. It is exact, since nothing else of a
        text depends on the gender and the occupation both; 0 for every occupation at leak 0.
        """
        told = {name: 0.5 + self.leak * (p - 0.5) for name, p in self.share_of_women.items()}
        return {name: math.log(p / (1 - p)) for name, p in told.items()}

    def to_frame(self) -> pd.DataFrame:
        """A row a text: the columns of Bias in Bios, then what only a simulation knows."""
        import pandas as pd

        values = (self.texts, self.occupations, self.genders)
        known = {"twin": self.twins, "written_for": self.written_for, "told": self.told}
        return pd.DataFrame({**dict(zip(COLUMNS, values, strict=True)), **known})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a CSV file with the columns of Bias in Bios: hard_text, profession, gender."""
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(zip(self.texts, self.occupations, self.genders, strict=True))
        with replace_file(path) as file:
            file.write(text.getvalue().encode())
