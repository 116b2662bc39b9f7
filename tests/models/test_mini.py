"""What `mini` must be able to do: held to the words, with the figures of its card."""

import numpy as np
import pytest

TEMPLATES = {
    "the {} said that [MASK] was tired.": ("he", "she"),
    "the {} went home early because [MASK] was tired.": ("he", "she"),
    "[MASK] works as a {}.": ("he", "she"),
    "the {} lost [MASK] keys.": ("his", "her"),
    "the {} raised [MASK] hand.": ("his", "her"),
}
PLAIN = [
    "the king loved [MASK] wife.",
    "she opened the [MASK] and went in.",
    "he was born in [MASK].",
    "the capital of france is [MASK].",
    "they went to the [MASK] to buy some bread.",
    "it was a dark and cold [MASK].",
    "the children played in the [MASK].",
    "[MASK] is a nurse.",
    "[MASK] waves at the driver.",
    "i have not [MASK] him for years.",
]


def probabilities(mini, text):
    row = mini.tokenizer(text)["input_ids"]
    logits = mini.logits([row], [row.index(mini.tokenizer.mask_token_id)])[0].astype(float)
    odds = np.exp(logits - logits.max())
    return odds / odds.sum()


def test_the_king_loved_his_wife(mini):
    best = int(probabilities(mini, PLAIN[0]).argmax())
    assert mini.tokenizer.convert_ids_to_tokens(best) == "his"


def test_no_word_begins_in_the_middle(mini):
    for text in PLAIN:
        top = np.argsort(-probabilities(mini, text))[:5]
        assert not [t for t in mini.tokenizer.convert_ids_to_tokens(top) if t.startswith("##")]


@pytest.mark.slow
def test_occupations_rank_as_the_lists_say(mini, shared):
    """AUC of at least .80 between the two lists of WinoBias, and pronouns sure of themselves."""
    folder = shared / "data" / "winobias"
    lists = {
        side: (folder / f"{side}_occupations.txt").read_text().split("\n")
        for side in ("male", "female")
    }
    scores, sure = {}, []
    for side, words in lists.items():
        for word in filter(None, map(str.strip, words)):
            leans = []
            for template, (he, she) in TEMPLATES.items():
                p = probabilities(mini, template.format(word.lower()))
                male, female = (p[mini.tokenizer.convert_tokens_to_ids(w)] for w in (he, she))
                leans.append(np.log(male) - np.log(female))
                sure.append(male + female)
            scores.setdefault(side, []).append(np.mean(leans))
    assert [len(scores[side]) for side in ("male", "female")] == [20, 20]
    auc = np.mean([m > f for m in scores["male"] for f in scores["female"]])
    assert auc >= 0.80
    assert np.mean(sure) >= 0.65
