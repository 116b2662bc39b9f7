"""What users import: signatures that show every parameter, and documentation with examples."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys

import pytest

import evenhand as eh

TYPES = ("evenhand.instruments.Progress", "evenhand.results.Worse")
"""Type aliases, which are not called."""


def packages():
    yield eh
    modules = [name for name in eh.__all__ if inspect.ismodule(getattr(eh, name))]
    for name in (*modules, "audit", "vectors.debias", "fewshot.networks"):
        yield importlib.import_module(f"evenhand.{name}")


def public():
    """Everything that a package lists in `__all__`, by its full name."""
    for package in packages():
        for name in getattr(package, "__all__", ()):
            value, full = getattr(package, name), f"{package.__name__}.{name}"
            if callable(value) and not inspect.ismodule(value) and full not in TYPES:
                yield full, value


PUBLIC = dict(public())


def functions(value):
    """The callable and, of a class, the methods that it defines."""
    if not inspect.isclass(value):
        return {"": value}
    is_own = value.__module__.startswith("evenhand")
    methods = {
        f".{name}": getattr(member, "__func__", member)
        for name, member in vars(value).items()
        if not name.startswith("_") and inspect.isfunction(getattr(member, "__func__", member))
    }
    if is_own and "__init__" in vars(value):
        methods[""] = value
    return methods


@pytest.mark.parametrize("name", PUBLIC)
def test_signatures_show_every_parameter(name):
    value = PUBLIC[name]
    if getattr(value, "_is_protocol", False):
        pytest.skip("not called by users")
    for method, function in functions(value).items():
        if method.startswith(".on_"):  # the interface of transformers
            continue
        if name + method in (
            "evenhand.instruments.Declaration.result",  # fields of Measurement
            "evenhand.instruments.Instrument.choose",  # each instrument names its own
        ):
            continue
        hidden = [
            str(parameter)
            for parameter in inspect.signature(function).parameters.values()
            if parameter.kind is parameter.VAR_KEYWORD
        ]
        assert not hidden, f"{name}{method} takes {hidden}"


def test_the_package_audit_does_not_hide_the_function():
    code = "import evenhand.audit.main, evenhand as eh; print(callable(eh.audit))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_instruments_show_their_options():
    for subject in ("vectors", "masked", "causal", "encoder", "corpus", "fewshot", "predictions"):
        for cls in eh.instruments.instruments(subject).values():
            names = set(inspect.signature(cls).parameters)
            assert names >= {option.name for option in cls.declaration.options}
