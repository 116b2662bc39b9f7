"""The generated reference is complete, and the navigation names every page."""

import ast
import importlib
import re
import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import click
import pytest
import yaml

from evenhand.cli import command
from evenhand.instruments import all_declarations

pytest.importorskip("griffe", reason="the extra docs is not installed")

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def site():
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        return importlib.import_module("docs_site")
    finally:
        sys.path.remove(str(ROOT / "tools"))


def test_every_instrument_is_described(site):
    pages = site.metric_pages()
    for about in all_declarations():
        room, name = site.room(about), site.anchor(about)
        page = pages[f"reference/metrics/{room}.md"]
        assert f"{{ #{name} }}" in page, name
        section = page[page.index(f"{{ #{name} }}") :].partition("\n## ")[0]
        assert all(f"`{option.name}`" in section for option in about.options), name
        assert f"{room}.md#{name})" in pages["reference/metrics/index.md"]


def test_every_instrument_is_among_the_measures_to_choose(site):
    page = (ROOT / "docs" / "which-measure.md").read_text(encoding="utf-8")
    for about in all_declarations():
        assert f"reference/metrics/{site.room(about)}.md#{site.anchor(about)})" in page, about.name


def test_every_command_and_option_is_described(site):
    pages = site.command_pages()

    def check(names, current, context):
        if len(names) > 1:
            page = pages[f"reference/commands/{names[1]}.md"]
            assert f"evenhand {' '.join(names[1:])} {{" in page
            options = (p for p in current.params if isinstance(p, click.Option) and not p.hidden)
            assert all(option.opts[0] in page for option in options if "--help" not in option.opts)
            assert current.help, names
        for name in current.list_commands(context) if isinstance(current, click.Group) else ():
            child = current.get_command(context, name)
            check((*names, name), child, click.Context(child, info_name=name, parent=context))

    check(("evenhand",), command, click.Context(command, info_name="evenhand"))


def test_every_public_name_is_described(site):
    pages = site.python_pages()
    modules = site.public_modules()
    functions = {"ask", "audit", "compare", "load", "measure"}
    assert functions <= set(site.public_names("evenhand"))
    assert {"evenhand.fewshot.networks", "evenhand.lexicon"} <= {*modules}
    for module in modules:
        page = pages[f"reference/python/{module.partition('.')[2] or 'evenhand'}.md"]
        for name in importlib.import_module(module).__all__:
            if name != "__version__" and not site.is_module(f"{module}.{name}"):
                assert f"heading: {module}.{name}\n" in page, f"{module}.{name}"


@cache
def definitions(module):
    """The nodes that define the functions and classes of a module, by name."""
    path = ROOT / "src" / module.replace(".", "/")
    source = path.with_suffix(".py") if path.with_suffix(".py").is_file() else path / "__init__.py"
    nodes = ast.parse(source.read_text(encoding="utf-8")).body
    return {n.name: n for n in nodes if isinstance(n, ast.FunctionDef | ast.ClassDef)}


def test_every_public_function_and_class_has_a_docstring(site):
    paths = {p for m in site.public_modules() for p in site.public_names(m).values()}
    named = ((path, *path.rsplit(".", 1)) for path in paths)
    defined = {
        path: definitions(module)[name]
        for path, module, name in named
        if name in definitions(module)
    }
    assert len(defined) > 0.8 * len(paths)
    assert not [path for path, node in defined.items() if not ast.get_docstring(node)]


def test_navigation_has_every_page_once(site):
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    config = SimpleNamespace(nav=settings["nav"])
    missing = site.unnamed_pages(config.nav)
    site.on_config(config)
    named = re.findall(r"[\w./-]+\.md", repr(config.nav))
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    assert sorted(named) == sorted([*pages, *site.generated_pages()])
    assert all(page in named for page in missing)


def test_nothing_is_loaded_from_other_hosts(site):
    assert yaml.safe_load((ROOT / "mkdocs.yml").read_text())["theme"]["font"] is False
    assert site.EXTERNAL.search('<script src="https://elsewhere.example/a.js"></script>')
    assert site.EXTERNAL.search("<link rel=stylesheet href=https://elsewhere.example/a.css>")
    assert not site.EXTERNAL.search('<a href="https://elsewhere.example">text</a>')


def test_notebooks_keep_their_outputs(site):
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "text"]},
        {
            "cell_type": "code",
            "source": ["1 + 1"],
            "outputs": [
                {"output_type": "stream", "text": ["\x1b[1mdone\x1b[0m\n"]},
                {"output_type": "execute_result", "data": {"text/plain": ["2"]}},
                {"output_type": "display_data", "data": {"image/png": "AAAA"}},
                {
                    "output_type": "display_data",
                    "data": {"text/html": ["<script>x</script>"], "text/plain": ["chart"]},
                },
            ],
        },
    ]
    page = site.notebook({"cells": cells})
    assert page.startswith("# Title\ntext\n\n```python\n1 + 1\n```")
    assert "```text\ndone\n```" in page
    assert "```text\n2\n```" in page
    assert "data:image/png;base64,AAAA" in page
    assert "script" not in page
    assert "chart" in page


def test_examples_within_a_docstring_become_code(site):
    text = "Add.\n\n>>> 1 + 1\n2\n\nMore."
    assert site.fence_doctests(text) == "Add.\n\n```pycon\n>>> 1 + 1\n2\n```\n\nMore."
    section = "Add.\n\nExamples\n--------\n>>> 1 + 1\n2"
    assert site.fence_doctests(section) == section


def test_cells_show_their_signs(site):
    markdown = pytest.importorskip("markdown")
    rows = [("`--case [a|b]`", "0<x<1, a|b *and* `c|d`")]
    page = markdown.markdown(site._table(("Option", "Meaning"), rows), extensions=["tables"])
    assert "<td><code>--case [a|b]</code></td>" in page
    assert "<td>0&lt;x&lt;1, a|b *and* <code>c|d</code></td>" in page


def test_intervals_stay_on_one_line(site):
    shown = site.on_page_content("<td>.03 [−.1, 1.25] of [0, 1, 2]</td>")
    assert shown == '<td>.03 <span class="interval">[−.1, 1.25]</span> of [0, 1, 2]</td>'
