import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import evenhand
from evenhand.errors import InputError, UnknownNameError
from evenhand.files import document, replace_file, save_json, to_json
from evenhand.instruments import compare
from evenhand.registry import Registry
from evenhand.results import Comparison, Estimate, Measurement
from evenhand.summary import summarize


def measurement(values, **changes):
    """The mean of some scores as a measurement with jackknife replicates."""
    x = np.asarray(values, dtype=float)
    rest = (x.sum() - x) / (x.size - 1)
    fields = {
        "metric": "mean", "query": "q", "value": float(x.mean()), "low": 0.0, "high": 1.0,
        "n": x.size, "ideal": 0.0, "worse": "away", "interval": "t",
        "items": tuple(
            {"word": f"w{i}", "score": s, "without": w}
            for i, (s, w) in enumerate(zip(x.tolist(), rest.tolist(), strict=True))
        ),
    }  # fmt: skip
    return Measurement(**{**fields, **changes})


def test_json_view_has_the_promised_keys():
    row = json.loads(to_json(measurement([1, 2]).to_dict(items=False)))
    promised = {
        "metric", "query", "value", "low", "high", "prob", "p_value", "n", "ideal", "worse",
        "left_out", "seed",
    }  # fmt: skip
    assert promised <= row.keys()
    assert "items" not in row
    assert row["left_out"] == []


def test_json_is_strict():
    text = to_json(document(a=np.float32(0.5), b=np.array([1, 2]), c=float("inf"), d={"e": (1,)}))
    assert json.loads(text) == {
        "schema": "evenhand/2", "a": 0.5, "b": [1, 2], "c": None, "d": {"e": [1]},
    }  # fmt: skip


def test_frame_has_a_row_a_word():
    frame = measurement([1, 2, 3]).to_frame()
    assert list(frame["word"]) == ["w0", "w1", "w2"]


def test_save_keeps_the_items(tmp_path):
    path = tmp_path / "m.json"
    measurement([1, 2]).save(path)
    saved = json.loads(path.read_text())
    assert saved["measurements"][0]["items"]["word"][0] == "w0"


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old")
    with pytest.raises(TypeError), replace_file(path) as file:
        file.writelines([b"half", None])
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.txt"]


def test_links_are_followed_and_folders_refused(tmp_path):
    (tmp_path / "real.json").write_text("old")
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    save_json(tmp_path / "link.json", {})
    assert (tmp_path / "link.json").is_symlink()
    assert json.loads((tmp_path / "real.json").read_text()) == {}
    with pytest.raises(IsADirectoryError, match="is a folder"):
        save_json(tmp_path, {})


def test_a_pipe_is_written_into_not_replaced(tmp_path):
    import threading

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    save_json(pipe, {})
    reader.join(timeout=20)
    assert got == [b"{}\n"]
    assert pipe.is_fifo()


def test_written_files_have_ordinary_permissions(tmp_path):
    save_json(tmp_path / "a.json", {})
    (tmp_path / "plain").write_text("")
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("a.json", "plain")}
    assert len(modes) == 1


def test_compare_pairs_the_words():
    """Large differences between words, a small equal change: the paired interval is tight."""
    before = np.array([1.0, 10.0, 100.0, 1000.0])
    noise = np.array([0.01, -0.01, 0.02, -0.02])
    change = compare(measurement(before), measurement(before + 0.5 + noise)).change
    assert change.value == pytest.approx(0.5)
    assert 0.4 < change.low < 0.5 < change.high < 0.6


def test_compare_equals_the_paired_t_interval():
    from scipy import stats

    rng = np.random.default_rng(3)
    x = rng.normal(size=10)
    y = x + rng.normal(0.3, 0.5, 10)
    found = compare(measurement(x), measurement(y)).change
    expected = stats.ttest_rel(y, x).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx(tuple(expected))


def test_compare_refuses_different_questions():
    with pytest.raises(InputError, match="same measurement twice"):
        compare(measurement([1, 2]), measurement([1, 2], query="other"))


def test_compare_without_items_claims_nothing():
    bare = measurement([1, 2], items=())
    made = compare(bare, bare)
    assert made.paired == 0
    assert made.change.low == -np.inf


def changed(before, after, *, half=0.02, ideal=0.5, worse="away", kind="difference", details=None):
    """A change from one value to another whose interval reaches `half` to either side."""
    first, second = (
        measurement([1, 2], value=value, ideal=ideal, worse=worse) for value in (before, after)
    )
    change = after / before if kind == "ratio" else after - before
    return Comparison(
        before=first,
        after=second,
        change=Estimate(value=change, low=change - half, high=change + half),
        interval="",
        paired=2,
        kind=kind,
        details=details or {},
    )


@pytest.mark.parametrize(
    ("before", "after", "options", "effect"),
    [
        (0.7, 0.6, {}, "nearer the ideal"),
        (0.3, 0.4, {}, "nearer the ideal"),
        (0.6, 0.7, {}, "further from the ideal"),
        (0.7, 0.4, {}, "nearer the ideal, on its other side"),
        (0.6, 0.2, {}, "further from the ideal, on its other side"),
        (0.7, 0.6, {"half": 0.2}, "no clear change"),
        (0.7, 0.4, {"half": 0.4}, "no clear change"),
        (0.7, 0.6, {"half": np.inf}, "no clear change"),
        (0.7, float("nan"), {"half": 0.0}, "no clear change"),
        (0.7, 0.6, {"ideal": None}, "lower"),
        (0.6, 0.7, {"ideal": None}, "higher"),
        (0.6, 0.7, {"worse": "higher"}, "worse"),
        (0.8, 0.6, {"worse": "higher"}, "better"),
        (0.7, 0.4, {"worse": "higher"}, "better, on the other side of the ideal"),
        (0.6, 0.7, {"worse": "lower"}, "better"),
        (0.7, 0.6, {"worse": "lower", "ideal": None}, "worse"),
        (9.0, 7.0, {"kind": "ratio", "ideal": None, "worse": "higher"}, "better"),
        (7.0, 9.0, {"kind": "ratio", "ideal": None, "worse": "higher"}, "worse"),
        (9.0, 9.1, {"kind": "ratio", "ideal": None, "worse": "higher"}, "no clear change"),
        (4.0, 2.0, {"kind": "ratio", "ideal": 1.0}, "nearer the ideal"),
        # 1.8 is nearer to 1 than .5 is as a ratio
        (0.5, 1.8, {"kind": "ratio", "ideal": 1.0}, "nearer the ideal, on its other side"),
    ],
)
def test_the_effect_says_what_a_change_means(before, after, options, effect):
    assert changed(before, after, **options).effect == effect


@pytest.mark.parametrize(
    ("distance", "effect"),
    [
        ((-0.06, -0.01), "nearer the ideal, on its other side"),
        ((-0.04, 0.03), "about as far from the ideal, on its other side"),
        ((0.01, 0.05), "further from the ideal, on its other side"),
    ],
)
def test_the_effect_is_judged_by_the_interval_of_the_distance(distance, effect):
    low, high = distance
    details = {"distance": {"value": (low + high) / 2, "low": low, "high": high, "prob": 0.95}}
    assert changed(0.55, 0.455, details=details).effect == effect
    same_side = changed(0.56, 0.52, details=details)
    assert same_side.effect == effect.removesuffix(", on its other side")
    assert changed(0.55, 0.455, half=0.1, details=details).effect == "no clear change"


@pytest.mark.parametrize(
    ("known", "clear"),
    [
        ({"p_value": 0.01}, True),
        ({"p_value": 0.31}, False),
        ({"p_value": 0.01, "p_corrected": 0.06, "family": 6}, False),
        ({"p_value": float("nan")}, True),
    ],
)
def test_a_change_is_clear_by_its_interval_and_its_test(known, clear):
    """As everywhere: the corrected p-value, where there is one, and the interval."""
    change = replace(changed(0.7, 0.6), **known)
    assert change.effect == ("nearer the ideal" if clear else "no clear change")
    before, after = (replace(m, metric="stereoset") for m in (change.before, change.after))
    assert ("less biased" in summarize(replace(change, before=before, after=after))) == clear


@pytest.mark.parametrize("worse", ["away", "higher", "lower"])
@pytest.mark.parametrize("kind", ["difference", "ratio"])
def test_a_value_that_changed_sides_is_never_called_nearer_without_saying_so(worse, kind):
    for before, after in np.random.default_rng(0).uniform(0.05, 2, (200, 2)):
        effect = changed(before, after, ideal=1.0, half=0.0, worse=worse, kind=kind).effect
        assert ("other side" in effect) == ((before - 1) * (after - 1) < 0)


def test_only_a_comparison_says_what_is_nearer_the_ideal():
    """So that no page, table or card has words of its own, without the side."""
    folder = Path(evenhand.__file__).parent
    files = [p for p in folder.rglob("*") if p.suffix in (".py", ".jinja", ".toml")]
    found = {
        p.relative_to(folder).as_posix() for p in files if '"nearer the ideal' in p.read_text()
    }
    assert found == {"results.py"}


def test_json_and_tables_have_the_effect_and_read_it_back():
    change = changed(0.7, 0.4)
    row = json.loads(to_json(change.to_dict()))
    assert row["effect"] == change.effect == "nearer the ideal, on its other side"
    assert Comparison.from_dict(row) == change
    assert change.to_frame()["effect"].tolist() == [change.effect]


def test_registry_suggests_and_is_lazy():
    names = Registry("thing", {"absent": "no.such.module:x", "sqrt": "math:sqrt"})
    assert names["sqrt"](4) == 2
    assert "absent" in names
    assert len(names) == 2
    with pytest.raises(UnknownNameError, match="did you mean 'sqrt'"):
        names["sqtr"]


@pytest.mark.parametrize(
    "module",
    [
        "evenhand",
        "evenhand.vectors",
        "evenhand.models",
        "evenhand.fewshot",
        "evenhand.lexicon",
    ],
)
def test_public_names_are_sorted_and_exist(module):
    from importlib import import_module

    loaded = import_module(module)
    assert list(loaded.__all__) == sorted(loaded.__all__)
    for name in loaded.__all__:
        assert getattr(loaded, name) is not None
    assert set(dir(evenhand)) == set(evenhand.__all__)
    with pytest.raises(AttributeError, match="no_such_thing"):
        _ = evenhand.no_such_thing


def test_a_p_value_says_what_it_is_against() -> None:
    m = Measurement(
        metric="m", query="q", value=1, low=0, high=2, n=3, ideal=0, worse="away", interval=""
    )
    assert m.null == ""
    assert replace(m, p_value=0.5).null == "the ideal"
    random = replace(m, p_value=0.5, details={"null_median": 0.2, "null_draws": 9})
    assert random.null == "random words"
    assert "p = 0.5 against random words" in str(random)
