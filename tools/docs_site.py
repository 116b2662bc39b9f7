"""The parts of the documentation site that are generated; a hook of mkdocs (mkdocs.yml).

Metrics come from their declarations, commands from the click tree, and the Python reference from
`__all__` of the modules that users import, with mkdocstrings for their docstrings. Notebooks are
converted as they are saved, with their outputs; nothing is executed here.
"""

from __future__ import annotations

import ast
import base64
import html
import inspect
import json
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import griffe

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.nav import Navigation
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"

ROOMS = {
    "vectors": ("Word vectors", "Static word vectors: GloVe, word2vec, fastText."),
    "models": (
        "Language models",
        "Masked models (BERT), causal models (GPT-2, Llama) and sentence encoders; each metric "
        "says which.",
    ),
    "text": ("Corpora", "Labelled texts, without any model."),
    "fewshot": ("Few-shot classifiers", "A run of `evenhand lab fewshot run`."),
    "classifier": ("Predictions", "The answers of any classifier, from a table."),
    "answers": ("Answers", "What language models write in answer to prompts, from a table."),
}
"""The packages that have metrics, with their headings, in the order of the reference."""

WORSE = {
    "higher": "higher is worse",
    "lower": "lower is worse",
    "away": "either side is worse",
}
ROLES = {
    "leads": "leads the verdict",
    "required": "required for strong evidence",
    "decides": "decides the verdict",
    "shown": "shown beside the verdict",
    "confirms": "confirms other tests",
    "": "none",
}
FURTHER_MODULES = ("evenhand.statistics.intervals",)
"""Modules that users import beside those that `evenhand` names."""


# ------------------------------------------------------------------------------------- metrics


def room(about: Any) -> str:
    """The package that has the metric, such as "models"."""
    from evenhand.instruments import PACKAGES

    return PACKAGES[about.subjects[0]].split(".")[1]


def anchor(about: Any) -> str:
    """The anchor of a metric on its page; causal models have a perplexity of their own."""
    own = about.name == "perplexity" and about.subjects == ("causal",)
    return f"causal-{about.name}" if own else str(about.name)


def metric_pages() -> dict[str, str]:
    """One page per package, with every instrument, and their index."""
    from evenhand.instruments import all_declarations

    declared = all_declarations()
    pages = {"reference/metrics/index.md": _metric_index(declared)}
    for name, (title, about) in ROOMS.items():
        own = [each for each in declared if room(each) == name]
        text = "\n\n".join([f"# {title}", about, *map(_metric, own)])
        pages[f"reference/metrics/{name}.md"] = text + "\n"
    return pages


def _metric_index(declared: Iterable[Any]) -> str:
    text = "# Every metric\n\nGenerated from the declarations; `evenhand list metrics NAME` prints"
    text += " the same in a terminal.\n"
    declared = list(declared)
    for name, (title, _) in ROOMS.items():
        rows = [
            (f"[{each.label}]({name}.md#{anchor(each)})", f"`{each.name}`", each.question)
            for each in declared
            if room(each) == name
        ]
        text += f"\n## {title}\n\n" + _table(("Metric", "Name", "Question"), rows) + "\n"
    return text


def _metric(about: Any) -> str:
    from evenhand.instruments import LANGUAGE

    ideal = "none stated" if about.ideal is None else f"{about.ideal:g}"
    facts = [
        ("Name", f"`{about.name}`"),
        ("Value without bias", f"{ideal}; {WORSE[about.worse]}"),
        ("Part in a verdict", ROLES[about.role]),
        ("Source", about.source or "Evenhand"),
    ]
    if room(about) == "models":
        kinds = (LANGUAGE[kind] + "s" for kind in about.subjects)
        facts.insert(1, ("Models", ", ".join(kinds)))
    if about.material:
        facts.append(("Material", about.material))
    parts = [
        f"## {_escaped(about.label)} {{ #{anchor(about)} }}",
        f"**{_escaped(about.question)}**",
    ]
    if about.formula:
        parts.append(f"``` {{ .text .wrap }}\n{about.formula}\n```")
    if about.reading:
        parts.append(_escaped(about.reading))
    parts.append(_table(("", ""), facts))
    if about.options:
        rows = [(f"`{each.name}`", _default(each), _meaning(each)) for each in about.options]
        parts.append("Options:\n\n" + _table(("Option", "Default", "Meaning"), rows))
    if about.caveats:
        parts.append("Caveats:\n\n" + "\n".join(f"- {_escaped(each)}" for each in about.caveats))
    return "\n\n".join(parts)


def _default(option: Any) -> str:
    if isinstance(option.default, bool):
        return "on" if option.default else "off"
    return "" if option.default in (None, {}, ()) else f"`{option.default}`"


def _meaning(option: Any) -> str:
    choices = ", ".join(map(str, option.choices))
    return f"{option.help} One of {choices}." if choices else option.help


# ------------------------------------------------------------------------------------ commands


def commands() -> Iterator[tuple[tuple[str, ...], click.Command, click.Context]]:
    """Every command with its path of names, groups before their commands."""
    from evenhand.cli import command

    def walk(
        names: tuple[str, ...], current: click.Command, context: click.Context
    ) -> Iterator[tuple[tuple[str, ...], click.Command, click.Context]]:
        yield names, current, context
        if isinstance(current, click.Group):
            for name in current.list_commands(context):
                child = current.get_command(context, name)
                if child is None:
                    continue
                inner = click.Context(child, info_name=name, parent=context)
                yield from walk((*names, name), child, inner)

    yield from walk(("evenhand",), command, click.Context(command, info_name="evenhand"))


def command_pages() -> dict[str, str]:
    """One page per top-level command, with its subcommands, and their index."""
    index = [
        "# The command line",
        "Generated from the commands; `evenhand COMMAND --help` prints the same. Exit codes: "
        "0 done, 1 some of the work failed and the rest is saved, 2 the input is wrong (one line "
        "on stderr), 3 a gate is not met.",
    ]
    pages: dict[str, list[str]] = {}
    rows = []
    for names, current, context in commands():
        if len(names) == 1:
            index.append(_help(current))
            index.append(_options(current, context))
            continue
        page = f"reference/commands/{names[1]}.md"
        if len(names) == 2:
            rows.append((f"[`{names[1]}`]({names[1]}.md)", current.get_short_help_str(100)))
        heading = "#" * min(len(names) - 1, 3)
        anchor = "-".join(names[1:])
        text = [
            f"{heading} evenhand {' '.join(names[1:])} {{ #{anchor} }}",
            f"```text\n{current.get_usage(context)}\n```",
            _help(current),
            _options(current, context),
        ]
        pages.setdefault(page, []).extend(text)
    index.append(_table(("Command", ""), rows))
    written = {page: "\n\n".join(filter(None, text)) + "\n" for page, text in pages.items()}
    return {"reference/commands/index.md": "\n\n".join(filter(None, index)) + "\n", **written}


def _help(current: click.Command) -> str:
    """The help of a command as Markdown: paragraphs, and preformatted blocks as they are."""
    paragraphs = []
    for block in inspect.cleandoc(current.help or "").split("\n\n"):
        if block.startswith("\b"):
            paragraphs.append("```text\n" + block.lstrip("\b\n") + "\n```")
        else:
            paragraphs.append(_escaped(block))
    return "\n\n".join(paragraphs)


def _options(current: click.Command, context: click.Context) -> str:
    rows = []
    for parameter in current.get_params(context):
        record = parameter.get_help_record(context) if isinstance(parameter, click.Option) else None
        if record is not None and "--help" not in parameter.opts:
            rows.append((f"`{record[0]}`", record[1]))
    return _table(("Option", "Meaning"), rows) if rows else ""


# ------------------------------------------------------------------------------------- Python


@cache
def public_modules() -> tuple[str, ...]:
    """The modules that users import: those in `__all__` of `evenhand`, and of these in turn."""
    modules, left = {"evenhand", *FURTHER_MODULES}, ["evenhand"]
    while left:
        package = left.pop()
        named = (f"{package}.{name}" for name in import_module(package).__all__)
        inner = {name for name in named if is_module(name)} - modules
        new = {name for name in inner if hasattr(import_module(name), "__all__")}
        modules |= new
        left += new
    return tuple(sorted(modules))


def is_module(name: str) -> bool:
    """Whether a public name is a module."""
    package, _, last = name.rpartition(".")
    if _stub(package):  # what it imports from a module is a function or a class
        return last not in _stub(package) and _has_file(name)
    return inspect.ismodule(getattr(import_module(package), last))


def _has_file(module: str) -> bool:
    path = ROOT / "src" / module.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").is_file()


@cache
def _stub(package: str) -> dict[str, str]:
    """The names that the stub of a package imports from its modules, with where they are."""
    path = ROOT / "src" / package.replace(".", "/") / "__init__.pyi"
    if not path.is_file():
        return {}
    places: dict[str, str] = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            source = f"{package}.{node.module}" if node.level else node.module
            places |= {each.asname or each.name: f"{source}.{each.name}" for each in node.names}
    return places


def public_names(module: str) -> dict[str, str]:
    """The public names of a module that are not modules, with the path of their definition."""
    stub, loaded = _stub(module), import_module(module)
    names = {}
    for name in loaded.__all__:
        if name.startswith("__") or is_module(f"{module}.{name}"):
            continue
        path = stub.get(name, "")
        if not path:
            value = getattr(loaded, name)
            if inspect.ismodule(value):
                continue
            own = getattr(value, "__qualname__", "") == name and getattr(value, "__module__", "")
            path = f"{own}.{name}" if own and own.startswith("evenhand") else f"{module}.{name}"
        while _has_file(path):  # a module and its function have one name
            path += f".{name}"
        names[name] = path
    return names


BEHIND = "---\nsearch:\n  boost: 0.3\n---\n\n"
"""In a search, other pages come first."""


def python_pages() -> dict[str, str]:
    """One page per public module, with every name of its `__all__`, and their index."""
    pages: dict[str, str] = {}
    rows = []
    for module in public_modules():
        about = (import_module(module).__doc__ or "").strip().partition("\n\n")[0]
        summary = " ".join(about.split())
        slug = module.partition(".")[2] or "evenhand"
        rows.append((f"[`{module}`]({slug}.md)", summary))
        text = [f"# {module}", _escaped(summary)]
        for name, path in public_names(module).items():
            options = {"heading": f"{module}.{name}", "toc_label": name}
            lines = "".join(f"\n      {key}: {value}" for key, value in options.items())
            text.append(f"::: {path}\n    options:{lines}")
        pages[f"reference/python/{slug}.md"] = BEHIND + "\n\n".join(text) + "\n"
    index = "# Python\n\nGenerated from the docstrings of what `__all__` names.\n\n"
    return {"reference/python/index.md": index + _table(("Module", ""), rows) + "\n", **pages}


DOCTEST = re.compile(r"(?:^|\n\n)(?P<code>>>> .*?)(?=\n\n|\Z)", re.DOTALL)


class Doctests(griffe.Extension):
    """Examples of a docstring that stand in its text become blocks of code."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of a function, class, attribute or module."""
        if obj.docstring is not None and obj.is_class and ".metrics." in obj.path:
            found = getattr(import_module(obj.module.path), obj.name, None)
            if hasattr(found, "declaration"):  # with its options
                obj.docstring.value = inspect.getdoc(found) or ""
        if obj.docstring is not None:
            obj.docstring.value = fence_doctests(obj.docstring.value)


def fence_doctests(docstring: str) -> str:
    """A docstring with fences around its examples; a section of examples stays as it is."""
    text, section, rest = docstring.partition("\nExamples\n---")
    fenced = DOCTEST.sub(lambda match: f"\n\n```pycon\n{match['code']}\n```", text)
    return fenced.lstrip("\n") + section + rest


# ----------------------------------------------------------------------------------- notebooks


def notebook_pages() -> dict[str, str]:
    """Every notebook of docs/notebooks as a page with its saved outputs."""
    pages = {}
    for path in sorted((DOCS / "notebooks").glob("*.ipynb")):
        document = json.loads(path.read_text(encoding="utf-8"))
        pages[path.relative_to(DOCS).with_suffix(".md").as_posix()] = notebook(document)
    return pages


def notebook(document: dict[str, Any]) -> str:
    """A notebook as Markdown."""
    parts = []
    for cell in document["cells"]:
        source = "".join(cell["source"]).strip("\n")
        if cell["cell_type"] == "markdown":
            parts.append(source)
        elif cell["cell_type"] == "code" and source:
            parts.append(f"```python\n{source}\n```")
            parts += filter(None, map(_output, cell.get("outputs", ())))
    return "\n\n".join(parts) + "\n"


def _output(output: dict[str, Any]) -> str:
    """One output of a cell: a picture, a page's part, or text."""
    if output["output_type"] == "stream":
        return _printed("".join(output["text"]))
    if output["output_type"] == "error":
        return _printed(f"{output['ename']}: {output['evalue']}")
    data = output.get("data", {})
    if "image/svg+xml" in data:
        drawing = base64.b64encode("".join(data["image/svg+xml"]).encode()).decode()
        return _picture(f"data:image/svg+xml;base64,{drawing}")
    if "image/png" in data:
        return _picture(f"data:image/png;base64,{''.join(data['image/png']).strip()}")
    page = "".join(data.get("text/html", ()))
    if page and "<script" not in page:
        page = re.sub(r"<style.*?</style>", "", page, flags=re.DOTALL)
        page = re.sub(r"\n\s*\n", "\n", page)  # an empty line would end the HTML
        return f'<div class="output">{page}</div>'
    return _printed("".join(data.get("text/plain", ())))


def _picture(address: str) -> str:
    return f'<div class="output"><img alt="Chart" src="{address}"></div>'


def _printed(text: str) -> str:
    text = re.sub(r"\x1b\[[0-9;]*m", "", text).rstrip()
    return f'<div class="output" markdown="1">\n\n```text\n{text}\n```\n\n</div>' if text else ""


# --------------------------------------------------------------------------------------- hooks


@cache
def generated_pages() -> dict[str, str]:
    """Every generated page by its path."""
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    return {
        **metric_pages(),
        **command_pages(),
        **python_pages(),
        **notebook_pages(),
        "changelog.md": changes.replace("](docs/", "]("),
    }


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Complete the navigation with generated pages, notebooks, and pages that it does not name."""
    pages = generated_pages()
    for folder in ("reference/commands", "reference/python"):
        section = _section(config.nav, f"{folder}/index.md")
        own = [path for path in pages if path.startswith(f"{folder}/")]
        section += [{Path(path).stem: path} for path in own if not path.endswith("/index.md")]
    for path in unnamed_pages(config.nav):
        results = Path(path).name.startswith("results")
        beside = "results.md" if results else "guides/audit.md"
        _section(config.nav, beside).append({_title((DOCS / path).read_text("utf-8")): path})
    notebooks = _section(config.nav, "notebooks/README.md")
    notebooks += [{_title(pages[path]): path} for path in notebook_pages()]
    return config


def unnamed_pages(nav: Any) -> list[str]:
    """The pages that the navigation does not name; they come last among the guides."""
    named = set(re.findall(r"[\w./-]+\.md", repr(nav)))
    pages = (path.relative_to(DOCS).as_posix() for path in sorted(DOCS.rglob("*.md")))
    return [page for page in pages if page not in named]


def _section(nav: Any, page: str) -> list[Any]:
    """The innermost list of the navigation that has the page."""
    for entry in nav:
        inner = next(iter(entry.values())) if isinstance(entry, dict) else entry
        if inner == page:
            return nav
        if isinstance(inner, list) and (section := _section(inner, page)):
            return section
    return []


def _title(markdown: str) -> str:
    """The first heading of a page."""
    heading = re.search(r"^# (.+)$", markdown, re.MULTILINE)
    return heading[1] if heading else "Untitled"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages; of the documentation's own data only what pages show is copied."""
    from mkdocs.structure.files import File

    for path, content in generated_pages().items():
        files.append(File.generated(config, path, content=content))
    for file in list(files):
        if file.src_uri.endswith((".xz", ".gz", ".ipynb")):
            files.remove(file)
    return files


def on_nav(nav: Navigation, config: MkDocsConfig, files: Files) -> None:  # noqa: ARG001
    """A page that exists and that the navigation does not name is an error."""
    named = {page.file.src_uri for page in nav.pages}
    lost = {file.src_uri for file in files.documentation_pages()} - named
    if lost:
        sys.exit(f"mkdocs.yml: nav does not name {', '.join(sorted(lost))}")


EXTERNAL = re.compile(
    r"""<(?:script|img|iframe|link)\b[^>]*?\b(?:src|href)=["']?(https?://[^"'\s>]+)"""
)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> None:  # noqa: ARG001
    """A page that loads anything from another host is an error."""
    if loaded := EXTERNAL.search(output):
        sys.exit(f"{page.file.src_uri}: loads {loaded[1]}")


OUTSIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./)+(?:src|tests|tools|benchmarks|[A-Z]+)[^)]*\)")
DATA = re.compile(r"\[([^\]]+)\]\((?:[^)]*\.(?:xz|gz)|(?:\.\./)?results/[^).]*)\)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Links to files of the repository that the site does not have become text."""
    markdown = re.sub(r"(\]\([^)]*)\.ipynb\)", r"\1.md)", markdown)
    return DATA.sub(r"\1", OUTSIDE.sub(r"\1", markdown))


INTERVAL = re.compile(r"\[[-−.\d]+, [-−.\d]+\]")


def on_page_content(content: str, **_: Any) -> str:
    """The two ends of an interval stay on one line."""
    return INTERVAL.sub(r'<span class="interval">\g<0></span>', content)


# --------------------------------------------------------------------------------------- words


def _table(headers: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(headers) + " |", "| " + " | ".join("---" for _ in headers) + " |"]
    for row in rows:
        cells = [cell if cell[:1] in "`[" else _escaped(cell) for cell in row]
        cells = [" ".join(cell.split()) for cell in cells]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _escaped(text: str) -> str:
    """Text whose signs are not Markdown; what stands in backticks stays code."""
    parts = re.split(r"(`[^`]*`)", text)
    escaped = [re.sub(r"([*_\[\]{}\\|])", r"\\\1", html.unescape(part)) for part in parts[::2]]
    escaped = [html.escape(part, quote=False) for part in escaped]
    return "".join(text for pair in zip(escaped, [*parts[1::2], ""], strict=True) for text in pair)
