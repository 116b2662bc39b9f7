"""Leak 0 is no bias, for any classifier; above 0 the bias is there; counterfactuals are exact."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from evenhand.simulate.biographies import biographies, grammar
from evenhand.text.rewrite import rewrite_all
from evenhand.text.rewrite.names import Anonymize
from evenhand.text.rewrite.neutralize import Neutralize
from evenhand.text.rewrite.swap import Swap

FEW = ["surgeon", "nurse", "dj", "composer", "attorney", "paralegal"]
GENDERED = {
    word.strip(".").lower()
    for slots in grammar().words
    for slot, word in slots.items()
    if "-" not in slot
}
NAMES = {name.lower() for pair in grammar().first_names for name in pair}
WORDING = {
    word.lower()
    for pairs in grammar().wording.values()
    for pair in pairs
    for phrase in pair
    for word in phrase.split()
}


def gender_accuracy(bios, without=()):
    """Right guesses of the recorded gender by a bag of words, on texts it was not fitted on."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression

    counts = CountVectorizer(min_df=2, stop_words=list(without) or None).fit_transform(bios.texts)
    women = np.array(bios.genders) == "F"
    odd = np.arange(len(women)) % 2 == 1
    fitted = LogisticRegression(max_iter=300, C=0.3).fit(counts[odd], women[odd])
    right = int((fitted.predict(counts[~odd]) == women[~odd]).sum())
    return stats.binomtest(right, int((~odd).sum())).proportion_ci(0.999, "wilson")


@pytest.mark.parametrize("wording", [0.0, 1.0])
def test_at_leak_0_words_do_not_tell_the_gender(wording):
    low, high = gender_accuracy(biographies(120, leak=0, shares=0, wording=wording, seed=1))
    assert low < 0.5 < high


def test_at_leak_1_they_do():
    assert gender_accuracy(biographies(60, leak=1, shares=0, seed=1)).low > 0.98


def test_beyond_gendered_words_only_the_wording_dial_tells_the_gender():
    hidden = GENDERED | NAMES
    bios = biographies(120, leak=1, shares=0, seed=2)
    low, high = gender_accuracy(bios, hidden)
    assert low < 0.5 < high
    assert gender_accuracy(biographies(120, leak=1, shares=0, wording=1, seed=2), hidden).low > 0.6


@pytest.mark.parametrize("wording", [0.0, 0.6])
def test_at_leak_0_the_texts_are_the_same_whoever_is_recorded(wording):
    tables = [biographies(40, leak=0, shares=s, wording=wording, seed=3) for s in (0, 1)]
    assert tables[0].texts == tables[1].texts
    assert tables[0].genders != tables[1].genders


def test_the_leak_changes_the_gender_and_nothing_else():
    tables = [biographies(20, leak=leak, seed=4) for leak in (0, 0.5, 1)]
    both = [[{x, y} for x, y in zip(t.texts, t.counterfactuals, strict=True)] for t in tables]
    assert both[0] == both[1] == both[2]


@pytest.mark.parametrize("wording", [0.0, 1.0])
def test_counterfactuals_differ_in_gendered_words_only(wording):
    bios = biographies(40, leak=0.5, wording=wording, seed=5)
    allowed = GENDERED | NAMES | {f"{name}'s" for name in NAMES} | (WORDING if wording else set())
    for text, counterfactual in zip(bios.texts, bios.counterfactuals, strict=True):
        pairs = list(zip(text.split(), counterfactual.split(), strict=True))
        differing = [(a, b) for a, b in pairs if a != b]
        assert differing
        for word in (word for pair in differing for word in pair):
            assert word.strip(".,;").lower() in allowed, (word, text)


def test_swapping_gives_the_counterfactual_and_swapping_the_counterfactual_the_text():
    bios = biographies(40, leak=0.5, seed=6)
    for texts, others in ((bios.texts, bios.counterfactuals), (bios.counterfactuals, bios.texts)):
        swapped = [done.text for done in rewrite_all(texts, Swap(names="fixed"))]
        assert sum(a == b for a, b in zip(swapped, others, strict=True)) >= 0.998 * len(others)


def test_neutral_and_anonymous_texts_are_the_same_as_their_counterfactuals():
    bios = biographies(20, leak=0.5, seed=7)

    def neutral(texts):
        anonymous = [done.text for done in rewrite_all(texts, Anonymize())]
        return [done.text for done in rewrite_all(anonymous, Neutralize())]

    one, two = neutral(bios.texts), neutral(bios.counterfactuals)
    assert sum(a == b for a, b in zip(one, two, strict=True)) >= 0.995 * len(one)


class Bayes:
    """Naive Bayes over the words of a world's texts, and its associations on other worlds."""

    def __init__(self, bios):
        from sklearn.feature_extraction.text import CountVectorizer
        from sklearn.naive_bayes import MultinomialNB

        self.vectorizer = CountVectorizer()
        self.classes = list(bios.classes)
        self.model = MultinomialNB().fit(
            self.vectorizer.fit_transform(bios.texts), bios.occupations
        )

    def score(self, texts, labels):
        """The log-probability of each label, and whether it is the likeliest."""
        rows = self.model.predict_log_proba(self.vectorizer.transform(texts))
        columns = np.searchsorted(self.model.classes_, labels)
        return rows[np.arange(len(labels)), columns], rows.argmax(axis=1) == columns

    def measures(self, bios):
        """By text: log p of the label against that of the counterfactual; the same and the gain in
        accuracy
        of the pro-stereotypical version over the anti-stereotypical one.
        """
        (log_p, right), (other, other_right) = (
            self.score(texts, bios.occupations) for texts in (bios.texts, bios.counterfactuals)
        )
        women = np.array(bios.genders) == "F"
        leaning = np.array([bios.share_of_women[name] > 0.5 for name in bios.occupations])
        sign = np.where(women == leaning, 1, -1)
        gain = sign * (right.astype(int) - other_right.astype(int))
        return {"association": log_p - other, "stereotype": sign * (log_p - other), "gain": gain}


@pytest.fixture(scope="module")
def biased():
    """A classifier that has learned to go by she and he."""
    return Bayes(biographies(300, leak=1, seed=100, occupations=FEW))


def test_at_leak_0_even_a_biased_classifier_measures_no_bias(biased):
    worlds = 100
    found = dict.fromkeys(("association", "stereotype", "gain"), 0)
    for seed in range(worlds):
        bios = biographies(12, leak=0, seed=seed, occupations=FEW)
        for name, values in biased.measures(bios).items():
            error = values.std(ddof=1) / np.sqrt(len(values))
            found[name] += bool(abs(values.mean()) > 1.99 * error)
    for name, count in found.items():
        assert stats.binomtest(count, worlds, 0.05).pvalue > 0.01, (name, count)


def test_at_leak_1_it_measures_bias(biased):
    for values in biased.measures(biographies(60, leak=1, seed=103, occupations=FEW)).values():
        assert stats.ttest_1samp(values, 0, alternative="greater").pvalue < 1e-6


def test_measured_bias_rises_with_the_leak():
    means = []
    for leak in (0, 0.3, 0.6, 1):
        bios = biographies(200, leak=leak, seed=101, occupations=FEW)
        fresh = biographies(200, leak=leak, seed=102, occupations=FEW)
        values = Bayes(bios).measures(fresh)["stereotype"]
        means.append((values.mean(), values.std() / np.sqrt(len(values))))
    assert abs(means[0][0]) < 3.5 * means[0][1]
    for (lower, error), (higher, other) in pairwise(means):
        assert higher - lower > 3 * np.hypot(error, other)


def few_shot(features, per_class, *, episodes=400):
    """5-way 5-shot accuracy of the nearest centroid by cosine."""
    rng = np.random.default_rng(0)
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    classes = len(unit) // per_class
    right = []
    for _ in range(episodes):
        chosen = rng.choice(classes, 5, replace=False)
        rows = np.stack([rng.permutation(per_class)[:15] + per_class * c for c in chosen])
        centres = unit[rows[:, :5]].mean(axis=1)
        centres /= np.linalg.norm(centres, axis=1, keepdims=True)
        guess = (unit[rows[:, 5:]] @ centres.T).argmax(axis=2)
        right.append((guess == np.arange(5)[:, None]).mean())
    return float(np.mean(right))


def test_the_task_is_neither_trivial_nor_hopeless_for_tfidf():
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = biographies(30, seed=8).texts
    rows = TfidfVectorizer(sublinear_tf=True).fit_transform(texts).toarray()
    assert 0.6 < few_shot(rows, 30) < 0.85


@pytest.mark.slow
def test_the_task_is_neither_trivial_nor_hopeless_for_mini():
    from evenhand.models import load

    features = load("mini").embed(biographies(15, seed=8).texts)
    assert 0.6 < few_shot(features - features.mean(axis=0), 15) < 0.85
