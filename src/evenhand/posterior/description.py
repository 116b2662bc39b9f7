"""What a distance table says without a model: means by connection, MAC, association contrast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from evenhand.display import Result
from evenhand.errors import InputError
from evenhand.instruments import Run
from evenhand.posterior.contrasts import HARD, find_equalised
from evenhand.posterior.tables import CONNECTIONS, Source, read_table
from evenhand.results import Measurement, Measurements
from evenhand.vectors.metrics.association import Association
from evenhand.vectors.metrics.mac import mac_of_table


@dataclass(frozen=True, slots=True, repr=False)
class Description(Result):
    """A distance table in numbers.

    Attributes
    ----------
    source : str
    rows, words, attributes : int
    connections : mapping of str to mapping
        Mean, median and size by connection class.
    measurements : tuple of Measurement
        MAC, then the association contrast.
    skipped : mapping of str to str
        Measures that the table does not allow, with the reason.
    dropped : mapping of str to int
    """

    source: str
    rows: int
    words: int
    attributes: int
    connections: Mapping[str, Mapping[str, float]]
    measurements: tuple[Measurement, ...]
    skipped: Mapping[str, str]
    dropped: Mapping[str, int]

    def to_dict(self) -> dict[str, object]:
        """Return everything, the measurements as results."""
        return {**asdict(self), "measurements": list(self.measurements)}

    def _headline(self) -> str:
        size = f"{self.words} words to {self.attributes} attributes"
        return f"{self.source}: {self.rows:,} distances of {size}"

    def _rows(self) -> Sequence[Mapping[str, object]]:
        return [
            {"connection": name, "value": numbers.get("mean"), **numbers}
            for name, numbers in self.connections.items()
        ] + list(Measurements(self.measurements)._rows())


def describe_table(source: Source, *, seed: int = 0, prob: float = 0.95) -> Description:
    """Describe a distance table: means by connection, MAC and the association contrast.

    Parameters
    ----------
    source : path, DataFrame, DistanceTable or Table
    seed, prob
        As for `Run`.

    Returns
    -------
    Description

    Notes
    -----
    The measures are those of `evenhand.vectors.Mac` and `evenhand.vectors.Association`,
    which need vectors and word lists; a table has all that they use. The p-value of the contrast
    holds for these protected words, its interval for new ones too. Where protected words have the
    same distances, as after hard debiasing, the contrast is zero by construction; a note says so
    and `details` names them (`equalised`).

    Examples
    --------
    >>> from evenhand.posterior import simulate
    >>> described = describe_table(simulate(delta=-0.3, seed=1))
    >>> [m.metric for m in described.measurements], described.measurements[1].high < 0
    (['mac', 'association'], True)
    """
    table = read_table(source)
    connections = {}
    for level in table.levels:
        values = table.distance[table.connection == CONNECTIONS.index(level)]
        connections[level] = {
            "mean": float(values.mean()),
            "median": float(np.median(values)),
            "size": int(values.size),
        }
    measured: list[Measurement] = []
    skipped: dict[str, str] = {}
    for name, measure in (("mac", mac_of_table), ("association", Association().measure_table)):
        try:
            measured.append(measure(table.to_distances(), Run(seed=seed, prob=prob)))
        except InputError as error:
            skipped[name] = str(error)
    equalised = find_equalised(table)
    if equalised and "association" not in skipped:
        note = f"{len(equalised)} of {len(table.words)} protected words have the distances of "
        measured[-1] = replace(
            measured[-1],
            notes=(*measured[-1].notes, f"{note}another word to every stereotype; {HARD}"),
            details={**measured[-1].details, "equalised": list(equalised)},
        )
    return Description(
        source=table.source,
        rows=table.rows,
        words=len(table.words),
        attributes=len(table.attributes),
        connections=connections,
        measurements=tuple(measured),
        skipped=skipped,
        dropped=dict(table.dropped),
    )
