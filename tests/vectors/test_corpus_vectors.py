"""The study of rewritten corpora, on a small world in which text is biased by construction."""

import numpy as np
import pytest

import corpus_vectors
import evenhand as eh
from evenhand.files import save_csv
from published import save_rows

TOPIC = corpus_vectors.TOPIC


def write_world(path, texts=3000, seed=0):
    """Texts about one person each: a name, gendered words, an occupation that mostly fits the
    stereotype, a word that leans to the gender, and one that does not.
    """
    rng = np.random.default_rng(seed)
    gendered = {
        "female": ["mother", "daughter", "girl", "aunt", "sister", "wife", "woman", "female"],
        "male": ["father", "son", "boy", "uncle", "brother", "husband", "man", "male"],
    }
    pronouns = {"female": ("She", "her"), "male": ("He", "his")}
    names = eh.lexicon.weat(6).targets
    queries = [eh.lexicon.weat(number) for number in (6, 7, 8)]
    probes = [
        w for q in queries for d in (q.targets, q.attributes) for ws in d.values() for w in ws
    ]
    controls = [*TOPIC.neutral[:40], *TOPIC.human[:40], *probes, "Paris", "France", "Rome", "Italy"]
    lines = []
    for _ in range(texts):
        side, other = rng.permutation(["female", "male"])
        stereotypes = TOPIC.stereotypes[side if rng.random() < 0.9 else other]
        leaning = f"{side[0]}lean{rng.integers(60)}"
        one, two = rng.choice(gendered[side], 2, replace=False)
        subject, possessive = pronouns[side]
        lines.append(
            f"{rng.choice(names[side])} was a {rng.choice(stereotypes)} and a {one}. {subject} saw "
            f"{possessive} {two} near {leaning} with {rng.choice(controls)}."
        )
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.slow
def test_the_study_runs_resumes_and_adds_seeds(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(corpus_vectors, "DRAWS", 160)
    corpus = write_world(tmp_path / "corpus.txt")
    out = tmp_path / "out"
    command = [str(corpus), "--out", str(out), "--min-count", "3", "--dimensions", "20"]
    command += ["--epochs", "6", "--tested", "10"]
    corpus_vectors.main([*command, "--seeds", "1"])
    one = capsys.readouterr().out
    corpus_vectors.main([*command, "--seeds", "2"])
    two = capsys.readouterr().out
    assert "original, seed 0: association" in one
    assert "original, seed 0: neighbours" in two  # the rest of its measures was there
    assert "original, seed 1: association" in two
    corpus_vectors.main([*command, "--seeds", "2"])
    again = capsys.readouterr().out
    assert "seed 0:" not in again
    assert again[again.index("Means over") :] == two[two.index("Means over") :]
    corpus_vectors.main(["--tables", str(out)])
    assert capsys.readouterr().out.strip() == two[two.index("Means over") :].strip()
    results = corpus_vectors.Results(out)
    association = {c: results.mean("association", [c])[0].value for c in corpus_vectors.CONDITIONS}
    assert association["original"] < -0.05
    assert abs(association["swapped"]) < abs(association["original"]) / 2
    assert abs(association["hard"]) < 1e-6
    lean = {c: results.mean("lean", [c])[0].value for c in corpus_vectors.CONDITIONS}
    assert lean["original"] > 0.1
    assert abs(lean["substituted"]) < lean["original"] / 2
    assert abs(lean["hard"]) < 1e-6
    hidden = {c: results.mean("recovery_rbf", [c])[0].value for c in corpus_vectors.CONDITIONS}
    assert hidden["original"] > 0.9
    assert hidden["swapped"] > 0.9  # names are not swapped, and still tell
    assert hidden["inlp"] < 0.8
    _, words = corpus_vectors.read_results(out)
    assert {row["word"] for row in words if row["measure"] == "recovery_rbf"}.isdisjoint(
        {"she", "he", "mother", "father", "lisa", "john"}
    )


def test_the_page_has_the_tables_of_the_published_files():
    folder = corpus_vectors.PAGE.parents[1] / "results" / "corpus-vectors"
    page = corpus_vectors.PAGE.read_text(encoding="utf-8")
    if not folder.is_dir():
        assert "there are no results yet" in page
        return
    assert corpus_vectors.all_tables(folder) in page


def results_of(folder, tables):
    """Published files of these (condition, measure) tables of seeds × words."""
    words = [
        {
            "condition": condition,
            "seed": seed,
            "measure": measure,
            "word": f"w{i}",
            "group": ("female", "male")[i % 3 == 0],
            "score": score,
        }
        for (condition, measure), table in tables.items()
        for seed, row in enumerate(table)
        for i, score in enumerate(row)
    ]
    scores = corpus_vectors.SCORES
    save_rows(folder / "words.csv.gz", [scores, *([row[n] for n in scores] for row in words)])
    row = dict.fromkeys(corpus_vectors.COLUMNS, 0)
    save_csv(folder / "measures.csv", [row])
    return corpus_vectors.Results(folder)


def test_a_difference_is_paired_by_seed_and_word_and_has_the_freedom_of_the_seeds(tmp_path):
    rng = np.random.default_rng(0)
    words, seeds = rng.normal(0, 1, 30), np.array([[0.0], [0.02], [-0.02]])
    base = np.round(words + seeds + rng.normal(0, 0.01, (3, 30)), 5)
    shift = np.round(base + 0.3 + np.array([[0.03], [0.0], [-0.03]]), 5)
    results = results_of(
        tmp_path, {("swapped", "recovery_rbf"): shift, ("hard", "recovery_rbf"): base}
    )
    mean, count = results.mean("recovery_rbf", ["swapped"], ["hard"])
    assert count == 3
    assert mean.value == pytest.approx(0.3, abs=1e-4)
    assert mean.freedom <= 2
    by_seed = (shift - base).mean(axis=1)
    assert mean.variance == pytest.approx(by_seed.var(ddof=1) / 3, rel=0.05)
    table = corpus_vectors.between_table(results)
    assert "| hidden | swapped − hard | 3 | .300 [" in table


def test_the_contrast_is_the_mean_of_the_means_of_both_classes(tmp_path):
    table = np.array([[1.0, 2.0, 3.0, 5.0], [1.0, 2.0, 3.0, 5.0]])
    results = results_of(tmp_path, {("original", "association"): table})
    mean, _ = results.mean("association", ["original"])
    assert mean.value == pytest.approx(((1 + 5) / 2 + (2 + 3) / 2) / 2)


def test_the_lean_is_the_difference_of_the_classes(tmp_path):
    table = np.array([[1.0, 2.0, 3.0, 5.0], [1.0, 2.0, 3.0, 5.0]])  # male, female, female, male
    mean, _ = results_of(tmp_path, {("inlp", "lean"): table}).mean("lean", ["inlp"])
    assert mean.value == pytest.approx((2 + 3) / 2 - (1 + 5) / 2)


def test_seeds_without_a_partner_are_left_out(tmp_path):
    table = np.linspace(0, 1, 20).reshape(2, 10).round(3)
    results = results_of(
        tmp_path,
        {("original", "neighbours"): table, ("leace", "neighbours"): table[:1] - 0.25},
    )
    mean, count = results.mean("neighbours", ["leace"], ["original"])
    assert (count, round(mean.value, 6)) == (1, -0.25)
    assert results.mean("neighbours", ["swapped"], ["original"]) is None
