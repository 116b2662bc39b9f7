"""A page from its template: escaped, with the style and the script inline."""

from __future__ import annotations

from importlib import resources
from typing import Any

from evenhand.report.wording import interval, number, p_relation, p_value, percent

__all__ = ["render_page"]


def render_page(template: str, **values: Any) -> str:
    """One self-contained HTML file; a name that the template has and `values` lacks is an error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("evenhand.report"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {
        "number": number, "p": p_value, "p_relation": p_relation, "percent": percent,
    }  # fmt: skip
    environment.globals |= {"interval": interval}
    templates = resources.files("evenhand.report") / "templates"
    return environment.get_template(template).render(
        style=(templates / "style.css").read_text(encoding="utf-8"),
        script=(templates / "script.js").read_text(encoding="utf-8"),
        **values,
    )
