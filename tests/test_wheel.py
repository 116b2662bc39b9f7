"""The built wheel holds what it needs and works away from the repository."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

SCRIPT = """
import evenhand as eh
assert eh.__file__.startswith({target!r}), eh.__file__
v = eh.vectors.load("glove")
m = eh.measure(v, eh.lexicon.topic("religion"), ["mac"], options={{"null": 10}})[0]
mini = eh.models.load("mini")
row = mini.tokenizer("the king loved [MASK] wife.")["input_ids"]
best = mini.logits([row], [row.index(mini.tokenizer.mask_token_id)])[0].argmax()
print(round(m.value, 3), len(v), mini.tokenizer.convert_ids_to_tokens(int(best)))
"""


@pytest.mark.slow
def test_the_wheel_works_outside_the_repository(tmp_path):
    def command(*arguments, **options):
        return subprocess.run(
            arguments, check=True, capture_output=True, text=True, timeout=900, **options
        ).stdout

    command(sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path), str(ROOT))
    (wheel,) = tmp_path.glob("evenhand-*.whl")
    target = str(tmp_path / "site")
    command(sys.executable, "-m", "pip", "install", "--no-deps", "--target", target, str(wheel))
    text = command(
        sys.executable, "-c", SCRIPT.format(target=target), cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": target},
    )  # fmt: skip
    assert text.split()[1:] == ["50051", "his"]
