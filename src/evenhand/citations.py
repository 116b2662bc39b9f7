"""References: BibTeX of Evenhand and of the authors of a measure.

Declarations name their sources as authors and year, such as "Nadeem, Bethke & Reddy (2021)". The
entries are in `assets/references.bib`; a source is found in them by the ways of citing its authors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib import resources

from evenhand import __version__

OWN = """@software{{evenhand,
  title   = {{Evenhand}},
  author  = {{{{The Evenhand authors}}}},
  version = {{{version}}},
  note    = {{Measures, explains and reduces social bias, with its uncertainty}}
}}"""


def bibtex(keys: Iterable[str]) -> str:
    """The BibTeX entries of these keys; `evenhand` is the package itself.

    >>> print(bibtex(["gonen2019"]).splitlines()[0])
    @inproceedings{gonen2019,
    """
    own = {"evenhand": OWN.format(version=__version__)}
    entries = _entries() | own
    return "\n\n".join(entries[key] for key in keys)


def keys_of(source: str) -> list[str]:
    """The keys of the references that a source names, in its order.

    >>> keys_of("May et al. (2019); random effects after Guo & Caliskan (2021)")
    ['may2019', 'guo2021']
    """
    found = {
        key: match.start()
        for key, pattern in _patterns().items()
        if (match := pattern.search(source)) is not None
    }
    return sorted(found, key=lambda key: found[key])


@cache
def _entries() -> dict[str, str]:
    text = (resources.files("evenhand") / "assets" / "references.bib").read_text(encoding="utf-8")
    return {re.findall(r"@\w+{(\w+),", entry)[0]: entry for entry in text.strip().split("\n\n")}


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    """How each reference may be cited: all authors, or the first and "et al."."""
    return {key: _pattern(entry) for key, entry in _entries().items()}


def _pattern(entry: str) -> re.Pattern[str]:
    authors = re.findall(r"author = {(.*)},", entry)[0].split(" and ")
    names = [author.split(",")[0].strip("{}") for author in authors if author != "others"]
    year = re.findall(r"year = {(\d{4})}", entry)[0]
    forms = {" & ".join([", ".join(names[:-1]), names[-1]]) if names[1:] else names[0]}
    if len(authors) > 2 or "others" in authors:
        forms.add(f"{names[0]} et al.")
    cited = "|".join(map(re.escape, sorted(forms)))
    return re.compile(rf"(?<![\w&])(?<!& )(?<!, )(?:{cited})\s+\(?{year}\b")
