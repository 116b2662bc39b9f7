"""The pronoun score: published figures, edges of its rules, words, planted worlds, an oracle."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import (
    AutoModelForMaskedLM,
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    PreTrainedTokenizerFast,
)

from evenhand.errors import FileError, InputError, UnknownNameError
from evenhand.masked import load
from evenhand.masked.metrics import pronouns
from evenhand.masked.metrics.pronouns import VERDICTS, Rule, Sentence, bias, gendered, score
from evenhand.masked.metrics.pronouns_words import Pieces, pieces, unfit
from evenhand.simulate.masked import bigram_model

NAMES = ("pad", "unk", "cls", "sep", "mask")
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
FILLERS = {f"w{i}": 0.0 for i in range(12)}


def named(codes):
    return [VERDICTS[code] for code in codes]


@pytest.mark.parametrize(
    ("before", "male", "female", "expected"),
    [
        ("[CLS]", ("he", 0.435), ("she", 0.195), 0.69),
        ("up", ("his", 0.142), ("her", 0.113), 0.56),
        ("up", ("his", 0.542), ("her", 0.0305), 0.95),
    ],
)
def test_published_figures(before, male, female, expected):
    """Ye et al. (2021), §3.3 and §4.1."""
    model = bigram_model({before: dict([male, female, ("the", 0.01)]) | {"other": 0.2}, "x": {}})
    text = "[MASK] turns up." if before == "[CLS]" else "Someone ties up [MASK] laces."
    told = score(model, [text])
    assert round(told.top.mean_bias.value, 2) == expected
    assert round(told.full.mean_bias.value, 2) == expected
    assert told.probabilities.p_male[0] == pytest.approx(male[1], abs=1e-6)
    assert told.probabilities.p_female[0] == pytest.approx(female[1], abs=1e-6)
    assert (told.probabilities.male_word[0], told.probabilities.female_word[0]) == (
        male[0], female[0],
    )  # fmt: skip


def test_edges_of_delta_and_of_the_five_percent():
    male = [0.55, 0.5501, 0.45, 0.4499, 0.05, 0.0499, 0.02, 0.0, np.nan, 0.3, np.nan]
    female = [0.45, 0.4499, 0.55, 0.5501, 0.01, 0.01, 0.05, 0.0, np.nan, np.nan, 0.3]
    found = named(pronouns.verdicts(male, female, Rule()))
    assert found == [
        "neutral", "male", "neutral", "female", "male", "undecided", "female", "undecided",
        "undecided", "male", "female",
    ]  # fmt: skip
    assert named(pronouns.verdicts([0.3, 0.3001], [0.3, 0.3], Rule(delta=0))) == ["neutral", "male"]
    assert np.isnan(bias(0.0, 0.0))


@pytest.mark.parametrize(
    "wrong", [{"delta": 0.5}, {"delta": -0.1}, {"least": 1.1}, {"top_k": 0}, {"prob": 1.0}]
)
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        Rule(**wrong)


WORLD = {
    "both": {"he": 0.3, "she": 0.1, "it": 0.58},
    "one": {"he": 0.2, "she": 0.0001, **dict.fromkeys(FILLERS, 0.0666)},
    "none": {"he": 0.001, "she": 0.0005, **dict.fromkeys(FILLERS, 0.0832)},
    "weak": {"he": 0.04, "she": 0.03, "it": 0.9},
    "even": {"he": 0.2, "she": 0.2, "it": 0.58},
    "noun": {"he": 0.1, "uncle": 0.3, "aunt": 0.15, "she": 0.05},
}
TEXTS = [f"{word} [MASK] nods ." for word in WORLD]


def test_a_planted_world_reads_as_planted():
    told = score(bigram_model(WORLD), TEXTS)
    frame = told.to_frame().set_index("masked")
    assert frame["verdict"].tolist() == [
        "male", "male", "undecided", "undecided", "neutral", "male",
    ]  # fmt: skip
    assert frame["full_verdict"].tolist() == frame["verdict"].tolist()
    assert frame["in_top"].tolist() == ["both", "male", "none", "both", "both", "both"]
    expected = [0.75, 1.0, np.nan, 4 / 7, 0.5, 2 / 3]
    np.testing.assert_allclose(frame["bias"], expected, atol=1e-6)
    full = [0.75, 0.2 / 0.2001, 2 / 3, 4 / 7, 0.5, 2 / 3]
    np.testing.assert_allclose(frame["full_bias"], full, atol=1e-6)
    assert frame["male_word"].tolist()[-1] == "uncle"
    decided = [0.75, 1.0, 0.5, 2 / 3]
    assert told.top.mean_bias.value == pytest.approx(np.mean(decided), abs=1e-6)
    assert told.mean_of_all.value == pytest.approx(np.mean(full), abs=1e-6)
    groups = told.as_dict()
    assert [groups[v]["n"] for v in ("male", "female", "neutral", "undecided")] == [3, 0, 1, 2]
    assert groups["male"]["mean"] == pytest.approx(np.mean([0.75, 1, 2 / 3]), abs=1e-6)
    assert groups["undecided"]["absent"] == 1
    assert groups["one_sided"] == {"male": 1, "female": 0}
    assert (told.top.above, told.top.below) == (3, 0)
    assert told.top.p_value == pytest.approx(0.25)
    counts = np.zeros(20, int)
    counts[[10, 13, 15, 19]] = 1
    assert list(told.top.histogram) == counts.tolist()


def test_pronouns_alone_leave_the_nouns_out():
    told = score(bigram_model(WORLD), TEXTS, words="pronouns")
    assert told.full_bias[-1] == pytest.approx(0.1 / 0.15, abs=1e-6)
    with pytest.raises(UnknownNameError, match="words"):
        score(bigram_model(WORLD), TEXTS, words="nouns")


def test_a_smaller_k_leaves_more_undecided():
    model = bigram_model({"so": {"it": 0.5, "he": 0.3, "they": 0.1, "she": 0.08}})
    biases = [float(score(model, ["so [MASK] ."], top_k=k).bias[0]) for k in (1, 2, 4)]
    assert np.isnan(biases[0])
    assert biases[1:] == [1.0, pytest.approx(0.3 / 0.38, abs=1e-6)]


def test_a_sentence_that_comes_again_changes_nothing():
    model = bigram_model(WORLD)
    once, twice = score(model, TEXTS), score(model, TEXTS * 50)
    assert twice.duplicates == 49 * len(TEXTS)
    assert once.top.as_dict() == twice.top.as_dict()
    assert once.mean_of_all == twice.mean_of_all


def test_words_that_count():
    words = gendered()
    assert {words[w] for w in ("he", "him", "his", "himself", "uncle", "king")} == {"male"}
    assert {words[w] for w in ("she", "her", "hers", "herself", "aunt", "actress")} == {"female"}
    assert not {"actor", "they", "nurse", "cow", "mr", "hes"} & set(words)
    assert all(word.islower() and word.isalpha() for word in words)


def test_pieces_one_side_lacks():
    assert unfit(Pieces({1: "he"}, {2: "her"}))
    assert unfit(Pieces({}, {}))
    assert unfit(Pieces({1: "he", 3: "his"}, {2: "she"}))
    assert not unfit(Pieces({1: "his"}, {2: "her"}))
    with pytest.raises(InputError, match=r"model 'odd'.*he and she.*got he: a word"):
        score(bigram_model({"so": {"he": 0.5, "it": 0.5}}, name="odd"), ["so [MASK] ."])


def test_a_lacking_pronoun_is_named():
    model = bigram_model({"so": {"he": 0.4, "she": 0.3, "himself": 0.3}})
    assert "'herself'" in score(model, ["so [MASK] ."]).notes[0]


@pytest.mark.parametrize("text", ["No mask here.", "[MASK] saw [MASK]."])
def test_texts_must_have_one_mask(text):
    with pytest.raises(InputError, match=r"expected one mask"):
        score(bigram_model(WORLD), [text])


def test_slots_by_the_pronoun_or_by_the_model():
    world = {
        "a": {"he": 0.3, "she": 0.2, "his": 0.1, "him": 0.05, "her": 0.1},
        "b": {"he": 0.01, "she": 0.02, "his": 0.1, "him": 0.3, "her": 0.5},
    }
    texts = ["a [MASK] .", "a [MASK] , a", "b [MASK] .", "b [MASK] , a", "a [MASK] b a"]
    given = ["", "her", "", "His", "herself"]
    told = score(bigram_model(world), [Sentence(t, p) for t, p in zip(texts, given, strict=True)])
    assert told.to_frame()["slot"].tolist() == [
        "subject", "possessive", "object", "possessive", "reflexive",
    ]  # fmt: skip
    assert [(part.name, part.n) for part in told.by_pronoun] == [
        ("her", 1), ("herself", 1), ("his", 1),
    ]  # fmt: skip
    assert sum(part.n for part in told.by_slot) == 5


def test_saved_scores_hold_summary_and_items(tmp_path):
    told = score(bigram_model(WORLD), TEXTS)
    told.save(tmp_path / "scores.json")
    saved = json.loads((tmp_path / "scores.json").read_text())["models"][0]
    assert saved["mean_bias"]["value"] == told.top.mean_bias.value
    assert len(saved["items"]) == len(TEXTS)
    assert saved["items"][2]["bias"] is None


# --- an independent oracle on five families -------------------------------------------------

SENTENCES = [
    "The nurse said that [MASK] was late.",
    "[MASK] sings and reads.",
    "The doctor lost [MASK] keys.",
    "A teacher reads a book to [MASK].",
    'The engineer said "[MASK] is here".',
    "The table was to [MASK], the doctor said.",
]


def oracle(folder, text, words, k):
    """A plain call of the model for each text alone; every form of every word tried in place."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    network = AutoModelForMaskedLM.from_pretrained(folder).eval()
    before, after = text.split("[MASK]")

    def coded(word):
        return tokenizer(before + word + after)["input_ids"]

    tokens = {}
    for word, gender in words.items():
        for form in (word, word.capitalize(), word.upper()):
            one, other = coded(form), coded("the")
            if len(one) != len(other):
                continue
            changed = [
                i for i, pair in enumerate(zip(one, other, strict=True)) if len(set(pair)) > 1
            ]
            if len(changed) == 1 and one[changed[0]] != tokenizer.unk_token_id:
                tokens.setdefault((changed[0], one[changed[0]]), (word, gender))
    (place,) = {place for place, _ in tokens}
    row = coded("the")
    row[place] = tokenizer.mask_token_id
    with torch.no_grad():
        logits = network(input_ids=torch.tensor([row])).logits[0, place].double()
    p = logits.softmax(0).numpy()
    top = set(np.argsort(-p, kind="stable")[:k].tolist())
    found = {}
    for gender in ("male", "female"):
        of_gender = [(p[t], t, w) for (_, t), (w, g) in tokens.items() if g == gender]
        found[gender] = max(of_gender)
    (male, m, male_word), (female, f, female_word) = found["male"], found["female"]
    full = male / (male + female)
    inside = (m in top, f in top)
    cut = np.nan if not any(inside) else male * inside[0] / (male * inside[0] + female * inside[1])
    return male, female, male_word, female_word, cut, full


def refused(model, texts):
    """Whether the model has no one-piece pronouns; then scoring must say so."""
    if not unfit(pieces(model, "a [MASK] a", "pronouns")):
        return False
    with pytest.raises(InputError, match="as single pieces of its vocabulary, got he, her"):
        score(model, texts, words="pronouns")
    return True


def agrees(folder, model):
    told = score(model, SENTENCES, words="pronouns", top_k=10)
    assert all("single pieces" in out.reason for out in told.left_out)
    frame = told.to_frame().set_index("masked")
    assert len(frame) >= 4
    for text, row in frame.iterrows():
        male, female, male_word, female_word, cut, full = oracle(
            folder, text, dict(pronouns.PRONOUNS), 10
        )
        np.testing.assert_allclose([row.p_male, row.p_female], [male, female], rtol=1e-4)
        np.testing.assert_allclose([row.bias, row.full_bias], [cut, full], atol=1e-5)
        assert (row.male_word, row.female_word) == (male_word, female_word)


def test_all_families_agree_with_the_oracle(family):
    model = load(family)
    if not refused(model, SENTENCES):
        agrees(family, model)


def test_sentencepiece_agrees_with_the_oracle(tmp_path):
    """ALBERT's kind of tokenizer, with pronouns as single pieces: the space is part of them."""
    text = "the nurse said that was late sings and reads doctor lost keys a teacher book to is here"
    words = {*text.split(), "engineer", "table", *pronouns.PRONOUNS, "t", "h", "e"}
    listed = [("[UNK]", 0.0), *((f"\N{LOWER ONE EIGHTH BLOCK}{w}", -3.0) for w in sorted(words))]
    listed += [(c, -9.0) for c in 'abcdefghijklmnopqrstuvwxyz.,"\N{LOWER ONE EIGHTH BLOCK}']
    core = Tokenizer(models.Unigram([*listed, *((w, 0.0) for w in SPECIAL if w != "[UNK]")], 0))
    core.normalizer = normalizers.Lowercase()
    core.pre_tokenizer = pre_tokenizers.Metaspace()
    saved(tmp_path, core)
    agrees(tmp_path, load(tmp_path))


def test_the_other_texts_do_not_matter(family):
    """No padding, no batch effect: each text alone reads what it reads among others."""
    model = load(family)
    texts = [
        "The nurse said that [MASK] was late.",
        "The doctor lost [MASK] keys.",
        "The nurse said that the doctor said that [MASK] was early and late.",
    ]
    if refused(model, texts):
        return
    together = pronouns.probabilities(model, texts, words="pronouns")
    for i, text in enumerate(texts):
        alone = pronouns.probabilities(model, [text], words="pronouns")
        np.testing.assert_allclose(together.p_male[i], alone.p_male[0], rtol=1e-4)
        np.testing.assert_allclose(together.p_female[i], alone.p_female[0], rtol=1e-4)


def test_a_text_too_long_is_left_out_and_named(family):
    model = load(family)
    texts = [Sentence("the nurse said that " * 30 + "[MASK] was late.", "", 7), SENTENCES[0]]
    if refused(model, texts):
        return
    told = score(model, texts, words="pronouns")
    assert len(told) == 1
    assert told.left_out[0].line == 7
    assert "expected at most" in told.left_out[0].reason


def saved(folder, core):
    """A small random model with this tokenizer, on disk."""
    ids = {name: core.token_to_id(token) for name, token in zip(NAMES, SPECIAL, strict=True)}
    core.post_processor = processors.BertProcessing(("[SEP]", ids["sep"]), ("[CLS]", ids["cls"]))
    named_tokens = {f"{name}_token": token for name, token in zip(NAMES, SPECIAL, strict=True)}
    PreTrainedTokenizerFast(
        tokenizer_object=core, model_max_length=40, **named_tokens
    ).save_pretrained(folder)
    torch.manual_seed(3)
    config = BertConfig(
        vocab_size=core.get_vocab_size(), hidden_size=16, num_hidden_layers=2,
        num_attention_heads=2, intermediate_size=16, max_position_embeddings=40,
        initializer_range=0.5, pad_token_id=ids["pad"],
    )  # fmt: skip
    BertForMaskedLM(config).save_pretrained(folder)


def test_a_model_that_splits_its_pronouns_is_refused(tmp_path):
    letters = [*"abcdefghijklmnopqrstuvwxyz.", *(f"##{c}" for c in "ehimrs")]
    vocabulary = {token: i for i, token in enumerate([*SPECIAL, *letters])}
    core = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    saved(tmp_path / "split", core)
    with pytest.raises(InputError, match=r"model 'split'.*single pieces.*got none of them"):
        score(load(tmp_path / "split"), ["a [MASK] ."])


def test_in_a_cased_model_all_forms_count_and_names_do_not(tmp_path):
    words = ["he", "He", "HE", "she", "She", "king", "King", "uncle", "Uncle", "nods", "a", "."]
    vocabulary = {token: i for i, token in enumerate([*SPECIAL, *words])}
    core = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    saved(tmp_path / "cased", core)
    model = load(tmp_path / "cased")
    shown = model.tokenizer.convert_ids_to_tokens(sorted(pieces(model, "a [MASK] nods .").ids))
    assert shown == ["he", "He", "HE", "she", "She", "king", "uncle", "Uncle"]


def test_a_mask_within_a_word_is_not_scored_as_a_word():
    """ "fa[MASK]r": no pronoun is a word there, so the text is left out, not scored as if."""
    texts = ["The fa[MASK]r was late.", "The doctor said [MASK] was late."]
    told = score(load("mini"), texts, words="pronouns")
    assert len(told) == 1
    assert len(told.left_out) == 1


def test_reading(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text('\n{"masked": "a [MASK] .", "pronoun": "Her", "line": 9}\n\n')
    assert list(pronouns.read_sentences(path)) == [Sentence("a [MASK] .", "Her", 2)]
    path.write_text("a <mask> .\n  \nb [MASK] .\n")
    assert [s.line for s in pronouns.read_sentences(path)] == [1, 3]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("no mask", r"line 2: expected one \[MASK\], got none"),
        ("[MASK] saw <mask>", r"line 2: expected one \[MASK\], got 2"),
    ],
)
def test_bad_lines_are_named(tmp_path, line, problem):
    path = tmp_path / "in.txt"
    path.write_text(f"a [MASK] .\n{line}\n")
    with pytest.raises(FileError, match=problem):
        list(pronouns.read_sentences(path))


@pytest.mark.parametrize(
    "line",
    ["{not json", '{"text": "a [MASK]"}', '{"masked": 3}', '{"masked": "[MASK]", "pronoun": 1}'],
)
def test_bad_json_lines_are_named(tmp_path, line):
    path = tmp_path / "in.jsonl"
    path.write_text('{"masked": "a [MASK] ."}\n' + line + "\n")
    with pytest.raises(FileError, match="line 2"):
        list(pronouns.read_sentences(path))
