"""The help of a command loads no heavy library."""

import subprocess
import sys

HEAVY = {
    *("altair", "jax", "jinja2", "matplotlib", "pandas", "pyarrow", "ray", "scipy", "sklearn"),
    *("torch", "transformers"),
}

CODE = f"""
import contextlib, io, sys
import click
from evenhand.cli import command, run

def walk(group, names):
    yield names
    if isinstance(group, click.Group):
        context = click.Context(group)
        for name in group.list_commands(context):
            yield from walk(group.get_command(context, name), [*names, name])

for names in walk(command, []):
    with contextlib.redirect_stdout(io.StringIO()):
        code = run([*names, "--help"])
    found = sorted({HEAVY!r} & set(sys.modules))
    if code or found:
        sys.exit(f"{{' '.join(names)}} --help: exit code {{code}}, loads {{found}}")
"""


def test_the_help_of_every_command_loads_no_heavy_library():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
