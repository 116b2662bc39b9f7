"""The citation says what the package says of itself."""

import re
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]


def test_version_and_licence_are_those_of_the_package():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {"cff-version", "message", "title", "authors"} <= set(cited)
    assert cited["cff-version"] == "1.2.0"
    assert (cited["version"], cited["license"]) == (project["version"], project["license"])
    assert cited["authors"] == [{"name": "The Evenhand authors"}]


def test_every_source_of_a_measure_has_a_reference():
    from evenhand.citations import keys_of
    from evenhand.instruments import all_declarations
    from evenhand.report.methods import methods

    sources = {about.source for about in all_declarations()}
    sources |= {
        known.source
        for part in ("text", "posterior", "masked", "fewshot")
        for known in methods(part).values()
    }
    years = {source: len(re.findall(r"\b\d{4}\b", source)) for source in sources}
    assert sum(years.values()) > 30
    for source, count in years.items():
        assert len(keys_of(source)) == count, source


def test_references_are_whole():
    from evenhand.citations import bibtex

    text = (ROOT / "src/evenhand/assets/references.bib").read_text(encoding="utf-8")
    keys = re.findall(r"@\w+{(\w+),", text)
    assert keys == sorted(set(keys))
    for entry in bibtex(keys).split("\n\n"):
        assert entry.count("{") == entry.count("}")
        assert {"author", "title", "year"} <= set(re.findall(r"^  (\w+) = {", entry, flags=re.M))
