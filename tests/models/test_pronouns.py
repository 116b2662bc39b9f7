"""The pronoun score: published figures, edges of its rules, words, planted worlds, an oracle."""

from __future__ import annotations

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
from evenhand.instruments import measure
from evenhand.lexicon.pronouns import PRONOUNS
from evenhand.models import load
from evenhand.models.gender_words import (
    Pieces,
    _by_row,
    bias,
    gender_pieces,
    gendered,
    probabilities,
    unfit,
)
from evenhand.models.masked_scoring import MaskedPositions
from evenhand.models.metrics.pronouns import (
    VERDICTS,
    Pronouns,
    pool,
    verdicts,
)
from evenhand.models.sentences import Sentence, read_sentences
from evenhand.results import Measurement
from evenhand.results import load as load_result
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
    m = Pronouns()(model, [text])
    assert round(m.part("top 10", "vocabulary").value, 2) == expected
    assert round(m.value, 2) == expected
    item = m.items[0]
    assert item["p_male"] == pytest.approx(male[1], abs=1e-6)
    assert item["p_female"] == pytest.approx(female[1], abs=1e-6)
    assert (item["male_word"], item["female_word"]) == (male[0], female[0])


def test_edges_of_delta_and_of_the_five_percent():
    male = [0.55, 0.5501, 0.45, 0.4499, 0.05, 0.0499, 0.02, 0.0, np.nan, 0.3, np.nan]
    female = [0.45, 0.4499, 0.55, 0.5501, 0.01, 0.01, 0.05, 0.0, np.nan, np.nan, 0.3]
    found = named(verdicts(male, female))
    assert found == [
        "neutral",
        "male",
        "neutral",
        "female",
        "male",
        "undecided",
        "female",
        "undecided",
        "undecided",
        "male",
        "female",
    ]
    assert named(verdicts([0.3, 0.3001], [0.3, 0.3], delta=0)) == ["neutral", "male"]
    assert np.isnan(bias(0.0, 0.0))


@pytest.mark.parametrize(
    "wrong", [{"delta": 0.5}, {"delta": -0.1}, {"threshold": 1.1}, {"top_k": 0}]
)
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        measure(bigram_model(WORLD), TEXTS, "pronouns", options=wrong)


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
    m = Pronouns()(bigram_model(WORLD), TEXTS)
    frame = m.to_frame().set_index("masked")
    assert frame["verdict"].tolist() == [
        "male",
        "male",
        "undecided",
        "undecided",
        "neutral",
        "male",
    ]
    assert frame["full_verdict"].tolist() == frame["verdict"].tolist()
    assert frame["in_top"].tolist() == ["both", "male", "none", "both", "both", "both"]
    expected = [0.75, 1.0, np.nan, 4 / 7, 0.5, 2 / 3]
    np.testing.assert_allclose(frame["bias"], expected, atol=1e-6)
    full = [0.75, 0.2 / 0.2001, 2 / 3, 4 / 7, 0.5, 2 / 3]
    np.testing.assert_allclose(frame["full_bias"], full, atol=1e-6)
    assert frame["male_word"].tolist()[-1] == "uncle"
    decided = [0.75, 1.0, 0.5, 2 / 3]
    top = m.part("top 10", "vocabulary")
    assert top.value == pytest.approx(np.mean(decided), abs=1e-6)
    assert top.n == 4
    assert m.part("all sentences").value == pytest.approx(np.mean(full), abs=1e-6)
    counts = {part.query: part.details["count"] for part in top.select("verdict")}
    assert counts == {"male": 3, "female": 0, "neutral": 1, "undecided": 2}
    male = top.part("male", "verdict")
    assert male.part("mean score").value == pytest.approx(np.mean([0.75, 1, 2 / 3]), abs=1e-6)
    assert top.part("undecided").details["absent"] == 1
    assert top.details["one_sided"] == {"male": 1, "female": 0}
    assert (top.details["above"], top.details["below"]) == (3, 0)
    assert top.p_value == pytest.approx(0.25)
    histogram = np.zeros(20, int)
    histogram[[10, 13, 15, 19]] = 1
    assert top.details["histogram"]["counts"] == histogram.tolist()


def test_only_pronouns_leave_the_nouns_out():
    m = Pronouns(words="pronouns")(bigram_model(WORLD), TEXTS)
    assert m.items["full_bias"][-1] == pytest.approx(0.1 / 0.15, abs=1e-6)
    with pytest.raises(UnknownNameError, match="words"):
        Pronouns(words="nouns")(bigram_model(WORLD), TEXTS)


def test_a_smaller_k_leaves_more_undecided():
    model = bigram_model({"so": {"it": 0.5, "he": 0.3, "they": 0.1, "she": 0.08}})
    biases = [Pronouns(top_k=k)(model, ["so [MASK] ."]).items["bias"][0] for k in (1, 2, 4)]
    assert np.isnan(biases[0])
    assert biases[1:] == [1.0, pytest.approx(0.3 / 0.38, abs=1e-6)]


def test_a_repeated_sentence_changes_nothing():
    model = bigram_model(WORLD)
    once, twice = Pronouns()(model, TEXTS), Pronouns()(model, TEXTS * 50)
    assert twice.details["duplicates"] == 49 * len(TEXTS)
    assert once.parts == twice.parts
    assert (once.estimate, once.items) == (twice.estimate, twice.items)


def test_shards_pool_to_one_run():
    model = bigram_model(WORLD)
    shards = [Pronouns()(model, TEXTS[:4], seed=3), Pronouns()(model, TEXTS[2:], seed=3)]
    pooled, expected = pool(shards), Pronouns()(model, TEXTS, seed=3)
    assert pooled.parts == expected.parts
    assert pooled.estimate == expected.estimate
    assert pooled.details["duplicates"] == 2
    with pytest.raises(InputError, match="expected results of one rule"):
        pool([shards[0], Pronouns(delta=0.1)(model, TEXTS)])


def test_groups_of_sentences_are_parts():
    sentences = [Sentence(text, group="ab"[i % 2]) for i, text in enumerate(TEXTS)]
    m = Pronouns()(bigram_model(WORLD), sentences)
    assert [(part.query, part.details["sentences"], part.n) for part in m.select("group")] == [
        ("a", 3, 2),
        ("b", 3, 2),
    ]
    decided = [row["full_bias"] for row in m.items if row["group"] == "a"][::2]
    assert m.part("a", "group").value == pytest.approx(np.mean(decided))
    assert "group" not in Pronouns()(bigram_model(WORLD), TEXTS).items


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
        Pronouns()(bigram_model({"so": {"he": 0.5, "it": 0.5}}, name="odd"), ["so [MASK] ."])


def test_a_lacking_pronoun_is_named():
    model = bigram_model({"so": {"he": 0.4, "she": 0.3, "himself": 0.3}})
    assert "'herself'" in Pronouns()(model, ["so [MASK] ."]).notes[0]


@pytest.mark.parametrize("text", ["No mask here.", "[MASK] saw [MASK]."])
def test_texts_must_have_one_mask(text):
    with pytest.raises(InputError, match=r"expected one mask"):
        Pronouns()(bigram_model(WORLD), [text])


def test_slots_by_the_pronoun_or_by_the_model():
    world = {
        "a": {"he": 0.3, "she": 0.2, "his": 0.1, "him": 0.05, "her": 0.1},
        "b": {"he": 0.01, "she": 0.02, "his": 0.1, "him": 0.3, "her": 0.5},
    }
    texts = ["a [MASK] .", "a [MASK] , a", "b [MASK] .", "b [MASK] , a", "a [MASK] b a"]
    given = ["", "her", "", "His", "herself"]
    sentences = [Sentence(t, p) for t, p in zip(texts, given, strict=True)]
    m = Pronouns()(bigram_model(world), sentences)
    assert m.items["slot"] == ("subject", "possessive", "object", "possessive", "reflexive")
    assert [(part.query, part.n) for part in m.select("pronoun")] == [
        ("her", 1),
        ("herself", 1),
        ("his", 1),
    ]
    assert sum(part.n for part in m.select("slot")) == 5


def test_a_saved_measurement_reads_itself_back(tmp_path):
    m = Pronouns()(bigram_model(WORLD), TEXTS)
    m.save(tmp_path / "scores.json")
    saved = load_result(tmp_path / "scores.json")
    assert saved == m == Measurement.from_dict(m.to_dict())
    assert len(saved.items) == len(TEXTS)
    assert np.isnan(saved.items["bias"][2])
    assert Pronouns.compare(m, saved).change.value == 0


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
    if not unfit(gender_pieces(model, "a [MASK] a", "pronouns")):
        return False
    with pytest.raises(InputError, match="as single pieces of its vocabulary, got he, her"):
        Pronouns(words="pronouns")(model, texts)
    return True


def agrees(folder, model):
    m = Pronouns(words="pronouns", top_k=10)(model, SENTENCES)
    assert all("single pieces" in reason for reason in m.left_out)
    frame = m.to_frame().set_index("masked")
    assert len(frame) >= 4
    for text, row in frame.iterrows():
        male, female, male_word, female_word, cut, full = oracle(folder, text, dict(PRONOUNS), 10)
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
    words = {*text.split(), "engineer", "table", *PRONOUNS, "t", "h", "e"}
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
    together = probabilities(model, texts, words="pronouns")
    for i, text in enumerate(texts):
        alone = probabilities(model, [text], words="pronouns")
        np.testing.assert_allclose(together.p_male[i], alone.p_male[0], rtol=1e-4)
        np.testing.assert_allclose(together.p_female[i], alone.p_female[0], rtol=1e-4)


def test_a_text_too_long_is_left_out_and_named(family):
    model = load(family)
    texts = [Sentence("the nurse said that " * 30 + "[MASK] was late.", "", 7), SENTENCES[0]]
    if refused(model, texts):
        return
    m = Pronouns(words="pronouns")(model, texts)
    assert len(m.items) == 1
    assert m.left_out[0].startswith("line 7: ")
    assert "expected at most" in m.left_out[0]


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
        vocab_size=core.get_vocab_size(),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=40,
        initializer_range=0.5,
        pad_token_id=ids["pad"],
    )
    BertForMaskedLM(config).save_pretrained(folder)


def test_a_model_that_splits_its_pronouns_is_refused(tmp_path):
    letters = [*"abcdefghijklmnopqrstuvwxyz.", *(f"##{c}" for c in "ehimrs")]
    vocabulary = {token: i for i, token in enumerate([*SPECIAL, *letters])}
    core = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    saved(tmp_path / "split", core)
    with pytest.raises(InputError, match=r"model 'split'.*single pieces.*got none of them"):
        Pronouns()(load(tmp_path / "split"), ["a [MASK] ."])


def test_in_a_cased_model_all_forms_count_and_names_do_not(tmp_path):
    words = ["he", "He", "HE", "she", "She", "king", "King", "uncle", "Uncle", "nods", "a", "."]
    vocabulary = {token: i for i, token in enumerate([*SPECIAL, *words])}
    core = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    saved(tmp_path / "cased", core)
    model = load(tmp_path / "cased")
    pieces = gender_pieces(model, "a [MASK] nods .")
    shown = model.tokenizer.convert_ids_to_tokens(sorted((*pieces.male, *pieces.female)))
    assert shown == ["he", "He", "HE", "she", "She", "king", "uncle", "Uncle"]


def test_a_mask_within_a_word_is_not_scored_as_a_word():
    """ "fa[MASK]r": no pronoun is a word there, so the text is left out, not scored as if."""
    texts = ["The fa[MASK]r was late.", "The doctor said [MASK] was late."]
    m = Pronouns(words="pronouns")(load("mini"), texts)
    assert len(m.items) == 1
    assert len(m.left_out) == 1


def test_reading(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text('\n{"masked": "a [MASK] .", "pronoun": "Her", "line": 9}\n\n')
    assert list(read_sentences(path)) == [Sentence("a [MASK] .", "Her", 2)]
    path.write_text("a <mask> .\n  \nb [MASK] .\n")
    assert [s.line for s in read_sentences(path)] == [1, 3]


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
        list(read_sentences(path))


@pytest.mark.parametrize(
    "line",
    ["{not json", '{"text": "a [MASK]"}', '{"masked": 3}', '{"masked": "[MASK]", "pronoun": 1}'],
)
def test_bad_json_lines_are_named(tmp_path, line):
    path = tmp_path / "in.jsonl"
    path.write_text('{"masked": "a [MASK] ."}\n' + line + "\n")
    with pytest.raises(FileError, match="line 2"):
        list(read_sentences(path))


def test_queries_are_ordered_by_length_and_then_by_row():
    rng = np.random.default_rng(0)
    rows = [rng.choice([0, 1, 256, 70000], size=n).tolist() for n in rng.integers(1, 5, size=300)]
    positions = MaskedPositions.of_rows(rows, [0] * len(rows))
    missing = np.flatnonzero(rng.random(len(rows)) < 0.8)
    content = positions.rows()
    expected = sorted(missing.tolist(), key=lambda i: (len(rows[i]), content[i]))
    assert _by_row(positions, missing).tolist() == expected
    assert _by_row(positions, missing[:0]).tolist() == []
