"""The search for biased sentences: worlds with a known best edit, brute force, and the control."""

from __future__ import annotations

import json
from itertools import permutations, product

import numpy as np
import pytest

from evenhand.errors import FileError, InputError
from evenhand.lexicon.phrases import phrases
from evenhand.models.gender_words import bias, probabilities
from evenhand.models.generation.drafts import (
    Draft,
    DraftCandidate,
    DraftScorer,
    SeedContext,
    read_seeds,
    seeds_of,
)
from evenhand.models.generation.search import GenerateSettings, generate
from evenhand.models.masked import load
from evenhand.simulate.masked import MaskedBigrams, bigram_model
from evenhand.text.structural import Accepted, Filter

CHAIR = "The nurse moved her chair."
WIDE = {"likely": 0.0, "tried": 1000, "beam": 100}

UNLIKELY = {"his": 0.04, "her": 0.001, "she": 0.001, "he": 0.001, "him": 0.001, "chair": 0.95}


def chair_world(**more):
    """What stands before the pronoun decides: lifting is male, pushing is female."""
    return bigram_model(
        {
            "[CLS]": {"the": 0.9},
            "the": {"nurse": 0.5, "table": 0.2},
            "nurse": {"moved": 0.3, "lifted": 0.3, "pushed": 0.3, "threw": 0.01},
            "moved": {"his": 0.4, "her": 0.4},
            "lifted": {"his": 0.7, "her": 0.2},
            "pushed": {"his": 0.1, "her": 0.8},
            "threw": {"his": 0.9, "her": 0.01},
            "his": {"chair": 0.9},
            "her": {"chair": 0.9},
            "chair": {".": 0.9},
            "he": {"a": 0.2, "she": 0.1, "him": 0.1},
            **more,
        }
    )


class Embedding:
    """A model that embeds lifting near the words for men, pushing near those for women."""

    def __init__(self, model):
        self.model, self.lists = model, phrases()

    def __getattr__(self, name):
        return getattr(self.model, name)

    def embed(self, texts):
        male, female = self.lists.attributes.values()
        known = {**dict.fromkeys(male, 1.0), **dict.fromkeys(female, -1.0)}
        known |= dict.fromkeys(self.lists.control, 0.0)
        known |= {"lifted the chair": 0.5, "pushed the chair": -0.5, "moved the chair": 0.0}
        leaning = [known.get(text, 0.1 * (-1) ** len(text)) for text in texts]
        return np.array([[1.0, x, 0.01 * len(t)] for x, t in zip(leaning, texts, strict=True)])


@pytest.mark.parametrize(("direction", "word"), [("male", "lifted"), ("female", "pushed")])
def test_the_phrase_guides_the_search_where_the_pronoun_says_the_opposite(direction, word):
    opposite = {"lifted": {"his": 0.2, "her": 0.7}, "pushed": {"his": 0.8, "her": 0.1}}
    model = Embedding(chair_world(**opposite))
    settings = GenerateSettings(guide="phrases")
    result = generate(model, [CHAIR], direction=direction, settings=settings)
    (row,) = result.sentences
    assert row["sentence"] == f"The nurse {word} her chair."
    assert row["bias_after"] == pytest.approx(2 / 9 if word == "lifted" else 8 / 9, abs=1e-5)
    assert (row["phrase_after"] > row["phrase_before"]) == (word == "lifted")
    scores = {m.details["score"]: m for m in result.measurements}
    assert list(scores) == [
        "maximised by the search",
        "pronoun of the sentence",
        "held-out continuations",
    ]
    pushes = {name: m.part("found").part("push").value for name, m in scores.items()}
    assert pushes["maximised by the search"] > 0 > pushes["pronoun of the sentence"]
    assert "by the phrase score that it maximised" in result.sentence
    by_pronoun = generate(model, [CHAIR], direction=direction).sentences
    assert [r["sentence"] for r in by_pronoun] != [row["sentence"]]


def test_a_phrase_guide_needs_embeddings():
    with pytest.raises(InputError, match="a model that embeds texts"):
        generate(chair_world(), [CHAIR], settings=GenerateSettings(guide="phrases"))


@pytest.mark.parametrize(("direction", "word"), [("male", "lifted"), ("female", "pushed")])
def test_the_planted_edit_is_found(direction, word):
    result = generate(chair_world(), [CHAIR], direction=direction)
    (row,) = result.sentences
    assert row["sentence"] == f"The nurse {word} her chair."
    assert row["masked"] == f"The nurse {word} [MASK] chair."
    assert row["edits"] == [{"offset": 10, "old": "moved", "new": word}]
    assert row["bias_before"] == 0.5
    assert row["bias_after"] == pytest.approx(7 / 9 if word == "lifted" else 1 / 9, abs=1e-5)
    assert row["perplexity_ratio"] == row["fluency_loss"] == 1.0


def test_the_fluency_limit_decides_what_may_be_found():
    # P(threw | nurse) is 1/30 of P(moved | nurse), spread over four words besides the pronoun
    loss = 30**0.25
    for limit, word in ((loss - 0.01, "lifted"), (loss + 0.01, "threw")):
        settings = GenerateSettings(fluency=limit, **WIDE)
        (row,) = generate(chair_world(), [CHAIR], direction="male", settings=settings).sentences
        assert row["edits"][0]["new"] == word
    assert row["fluency_loss"] == pytest.approx(loss, abs=1e-4)


def test_a_fill_far_less_likely_than_the_likeliest_is_not_tried():
    settings = GenerateSettings(fluency=10, tried=1000)
    (row,) = generate(chair_world(), [CHAIR], direction="male", settings=settings).sentences
    assert row["edits"][0]["new"] == "lifted"


def test_both_pushes_each_seed_both_ways_and_own_the_way_it_leans():
    result = generate(chair_world(moved={"his": 0.3, "her": 0.5}), [CHAIR], direction="both")
    assert [row["direction"] for row in result.sentences] == ["male", "female"]
    (row,) = generate(chair_world(moved={"his": 0.3, "her": 0.5}), [CHAIR]).sentences
    assert row["direction"] == "female"
    assert row["edits"][0]["new"] == "pushed"


def test_losses_earn_no_credit_elsewhere():
    """A rarer word that makes the next one likelier: the ratio falls, the loss does not."""
    world = chair_world(
        nurse={"moved": 0.5, "lifted": 0.4},
        moved={"his": 0.4, "her": 0.4},
        lifted={"his": 0.7, "her": 0.1},
    )
    scorer = DraftScorer(world)
    context = SeedContext(seeds_of([DraftCandidate(CHAIR)]).seeds[0])
    draft = Draft(context, ((2, "lifted"),))
    (fluency,) = scorer.fluency([draft], 2)
    assert fluency.loss == fluency.ratio == pytest.approx((0.5 / 0.4) ** 0.25, abs=1e-5)
    assert scorer.fluency([draft], 1.01) == [None]


def brute_force(model, sentence, side, settings):
    """The best push over all sets of edits whose parts, in some order, all pass; by hand."""
    words = {word: i for word, i in model.tokenizer.get_vocab().items() if word.isalpha()}
    table, vocabulary = model.table, model.tokenizer.get_vocab()
    seed = Draft(SeedContext(seeds_of([DraftCandidate(sentence)]).seeds[0]))

    def p(before, word):
        return table[vocabulary[before], vocabulary[word]]

    def scores(draft):
        tokens = ["[CLS]", *draft.text[:-1].lower().split(), "."]
        at = draft.context.starts.index(draft.context.seed.accepted.offset) + 1
        log = [
            0 if i == at else np.log(p("[MASK]" if i - 1 == at else tokens[i - 1], tokens[i]))
            for i in range(1, len(tokens))
        ]
        log[-2:] = [log[-2] + log[-1]]  # the full stop stands in the chunk of the last word
        male = max(p(tokens[at - 1], word) for word in ("he", "his", "him") if word in words)
        female = max(p(tokens[at - 1], word) for word in ("she", "her") if word in words)
        return np.array(log), male / (male + female), max(male, female)

    first, before, _ = scores(seed)

    def passes(draft):
        log, score, likeliest = scores(draft)
        loss = np.maximum(first - log, 0).sum() / (len(log) - 1)
        gains = (score - before) * (1 if side == "male" else -1) >= 0
        fluent = loss <= np.log(settings.fluency)
        accepted = isinstance(Filter().sentence(draft.text), Accepted)
        return gains and fluent and accepted and draft.same_tags and likeliest >= settings.least

    found = {}
    for n in range(1, settings.edits + 1):
        for positions in permutations(seed.context.positions, n):
            for chosen in product(words, repeat=n):
                draft, ok = seed, True
                for position, word in zip(positions, chosen, strict=True):
                    ok = ok and draft.fits(position, word)
                    draft = draft.edited(position, word)
                    ok = ok and passes(draft)
                if ok:
                    found[draft.text] = scores(draft)[1]
    best = max if side == "male" else min
    return best(found.values(), default=None), len(found)


@pytest.mark.parametrize("number", range(4))
def test_a_full_beam_finds_what_brute_force_finds(number):
    rng = np.random.default_rng(number)
    words = [
        "the",
        "nurse",
        "moved",
        "lifted",
        "pushed",
        "raised",
        "old",
        "small",
        "white",
        "chair",
        "table",
        "lamp",
        ".",
        "his",
        "her",
        "he",
        "she",
        "him",
    ]
    worlds = {}
    for before in ["[CLS]", "[MASK]", *words]:
        weights = rng.gamma(0.7, size=len(words))
        worlds[before] = dict(zip(words, weights / weights.sum(), strict=True))
    model = bigram_model(worlds)
    sentence = "The nurse moved her old chair."
    settings = GenerateSettings(fluency=1.5, fills=50, gain=0.0, least=0.01, **WIDE)
    for side in ("male", "female"):
        wanted, n = brute_force(model, sentence, side, settings)
        rows = generate(model, [sentence], direction=side, settings=settings).sentences
        assert bool(rows) == (n > 0)
        assert n > 10 or number > 1
        if rows:
            assert rows[0]["bias_after"] == pytest.approx(wanted, abs=1e-5)


def test_the_output_is_the_same_for_the_same_seed_and_passes_the_filter():
    seeds = [CHAIR, "The cook lifted her table.", "A clerk pushed his chair."]
    world = chair_world(
        cook={"lifted": 0.4, "moved": 0.4},
        clerk={"pushed": 0.4, "moved": 0.4},
        a={"clerk": 0.5, "table": 0.1},
    )
    first, again = (generate(world, seeds, direction="both", seed=3) for _ in range(2))
    assert first.lines() == again.lines()
    assert first.controls == again.controls
    assert first.to_dict() == again.to_dict()
    assert generate(world, seeds, direction="both", seed=4).lines() == first.lines()
    assert first.sentences
    for row in first.sentences + first.controls:
        accepted = Filter().sentence(row["sentence"])
        assert isinstance(accepted, Accepted)
        assert {name: row[name] for name in accepted.__slots__} == {
            name: getattr(accepted, name) for name in accepted.__slots__
        }


def test_the_control_has_as_many_edits_out_of_the_same_candidates():
    model, settings = chair_world(), GenerateSettings(fluency=1.5)
    drawn = set()
    for seed in range(12):
        result = generate(model, [CHAIR], direction="male", settings=settings, seed=seed)
        (generated,), (control,) = result.sentences, result.controls
        assert len(control["edits"]) == len(generated["edits"]) == 1
        assert control["fluency_loss"] <= settings.fluency
        drawn.add(control["edits"][0]["new"])
    scorer = DraftScorer(model, likely=settings.likely)
    (proposals,) = scorer.proposals(
        [Draft(SeedContext(seeds_of([DraftCandidate(CHAIR)]).seeds[0]))]
    )
    assert drawn == {proposal.word for proposal in proposals} == {"lifted", "pushed"}


def test_two_seeds_give_one_sentence_once():
    seeds = [CHAIR, "The nurse pushed her chair."]
    result = generate(chair_world(), seeds, direction="male")
    assert [row["sentence"] for row in result.sentences] == ["The nurse lifted her chair."]
    assert result.nothing == {"same": 1}


@pytest.mark.parametrize(
    ("sentence", "world", "reason"),
    [
        ("The nurse has her own.", {}, "no_place"),
        (CHAIR, {"moved": {"his": 0.9, "her": 0.05}}, "no_gain"),
        (CHAIR, {"lifted": UNLIKELY}, "undecided"),
        (CHAIR, {"nurse": {"moved": 0.8, "lifted": 0.15}}, "fluency"),
    ],
)
def test_why_there_is_nothing(sentence, world, reason):
    world = {"has": {"her": 0.4, "his": 0.4}, "own": {".": 0.5}, **world}
    result = generate(chair_world(**world), [sentence], direction="male", control=False)
    assert result.sentences == []
    assert result.nothing == {reason: 1}
    assert [m.metric for m in result.measurements] == ["generation", "continuation"]
    for m in result.measurements:
        assert m.part("found").estimate == m.part("seeds").estimate


def test_the_head_of_the_antecedent_changes_only_when_asked():
    world = chair_world(
        the={"nurse": 0.4, "doctor": 0.4},
        doctor={"moved": 0.9},
        nurse={"moved": 0.9},
        moved={"his": 0.5, "her": 0.4, "him": 0.01},
    )
    seeds = seeds_of([DraftCandidate(CHAIR)])
    positions = [
        SeedContext(seeds.seeds[0], antecedent=antecedent).positions for antecedent in (False, True)
    ]
    assert positions == [(2, 4), (1, 2, 4)]
    result = generate(world, seeds, settings=GenerateSettings(antecedent=True, gain=0.0))
    assert {row["antecedent"] for row in result.sentences} <= {"The nurse", "The doctor"}


def test_a_judge_reads_the_same_sentences():
    judge = chair_world(lifted={"his": 0.3, "her": 0.6})
    result = generate(chair_world(), [CHAIR], direction="male", judges=[judge])
    mine, theirs = (m for m in result.measurements if m.metric == "generation")
    assert [m.details["score"] for m in (mine, theirs)] == ["maximised by the search", "judge"]
    assert mine.part("found").part("push").value == pytest.approx(7 / 9 - 0.5, abs=1e-5)
    assert theirs.part("found").part("push").value == pytest.approx(1 / 3 - 0.5, abs=1e-5)
    assert theirs.part("seeds").part("push").value == 0
    change = next(c for c in result.comparisons if c.before is theirs.part("seeds"))
    assert change.part("push").change.value == pytest.approx(1 / 3 - 0.5, abs=1e-5)
    assert theirs.value == pytest.approx(1 / 6, abs=1e-5)


class Reader(MaskedBigrams):
    """A model in which the verb tells the gender of the person at every mask of a text."""

    def logits(self, rows, positions):
        ids = self.tokenizer.convert_tokens_to_ids(["lifted", "pushed", "moved"])
        verbs = [next((i for i in row if i in ids), row[0]) for row in rows]
        with np.errstate(divide="ignore"):
            return np.log(self.table[verbs]).astype(np.float32)


def judged(model, **options):
    result = generate(model, [CHAIR], direction="male", **options)
    [of_search] = [m for m in result.measurements if m.metric == "generation"]
    [held_out] = [m for m in result.measurements if m.metric == "continuation"]
    assert held_out.details["score"] == "held-out continuations"
    return of_search.part("found").part("push").value, held_out.part("found").part("push").value


def test_what_the_search_maximises_is_not_what_judges_it():
    """Only the next word depends on the verb: the search gains, and the reader of more does not."""
    maximised, held_out = judged(chair_world())
    assert maximised == pytest.approx(7 / 9 - 0.5, abs=1e-5)
    assert held_out == pytest.approx(0, abs=1e-6)
    world = chair_world()
    settings = GenerateSettings(
        fluency=10, likely=0.0, edits=1
    )  # other words depend on the verb too
    reader = Reader(world.name, world.tokenizer, world.table)
    maximised, held_out = judged(reader, control=False, settings=settings)
    assert maximised == held_out == pytest.approx(7 / 9 - 0.5, abs=1e-5)


def test_the_summary_relies_on_the_continuations():
    result = generate(chair_world(), [CHAIR], direction="male")
    changes = {
        c.details["score"]: c.change.value for c in result.comparisons if c.query == "random"
    }
    held_out, maximised = (
        f"{changes[score]:+.3f} ["
        for score in ("held-out continuations", "maximised by the search")
    )
    first, second = result.sentence.split("; ")
    assert held_out in first
    assert "continuations that the search never scored" in first
    assert maximised in second
    assert result.to_dict()["sentence"] == result.sentence
    assert "minus the seeds" in generate(chair_world(), [CHAIR], control=False).sentence


def test_no_gendered_word_of_the_sentence_reaches_a_continuation():
    """The pronoun of the sentence is masked: with either one the score is the same."""
    model = load("mini")
    drafts = [
        Draft(SeedContext(seeds_of([DraftCandidate(f"The nurse moved {word} chair")]).seeds[0]))
        for word in ("her", "his")
    ]
    first, second = DraftScorer(model).continued(drafts)
    assert first == second
    whole, query = DraftScorer(model)._continuation(drafts[0], "Later [MASK] went home.")
    assert whole == "The nurse moved her chair. Later [MASK] went home."
    masks = [i for i, piece in enumerate(query.ids) if piece == model.tokenizer.mask_token_id]
    assert len(masks) == 2
    assert masks[1] == query.position
    assert model.tokenizer.decode([query.ids[query.position - 1]]).strip() == "later"


def test_continuations_of_mini_tell_who_the_sentence_is_about():
    def scores(jobs):
        texts = [f"The {job} moved his chair." for job in jobs]
        drafts = [Draft(SeedContext(seed)) for seed in seeds_of(map(DraftCandidate, texts)).seeds]
        return [slot.bias for slot in DraftScorer(load("mini")).continued(drafts)]

    women = scores(["nurse", "receptionist", "librarian", "dancer", "midwife"])
    men = scores(["engineer", "carpenter", "mechanic", "soldier", "plumber"])
    assert np.mean(men) - np.mean(women) > 0.05


def test_a_sentence_too_long_with_a_continuation_is_left_out_of_that_judgement():
    world = chair_world()
    world.tokenizer.model_max_length = len(world.tokenizer(CHAIR)["input_ids"]) + 2
    result = generate(world, [CHAIR], direction="male")
    assert {m.metric for m in result.measurements} == {"generation"}
    assert "none could be scored" in result.sentence


def test_what_the_model_cannot_read_is_counted():
    result = generate(chair_world(), [CHAIR, "The nurse moved her samovar."], control=False)
    assert result.left_out == {"unreadable": 1}
    assert len(result.outcomes) == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"edits": 0}, "edits"),
        ({"fluency": 0.9}, "fluency"),
        ({"gain": 1.0}, "gain"),
        ({"likely": -0.1}, "likely"),
    ],
)
def test_settings_out_of_range_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        GenerateSettings(**settings)
    with pytest.raises(InputError, match="direction"):
        generate(chair_world(), [CHAIR], direction="up")
    with pytest.raises(InputError, match="threshold"):
        generate(chair_world(), [CHAIR], threshold=0.5)


def test_seeds_come_from_text_and_from_the_filters_lines(tmp_path):
    text = tmp_path / "seeds.txt"
    text.write_text(f"{CHAIR}\n\nThe girl moved her chair.\n{CHAIR}\n")
    seeds = read_seeds(text)
    assert [(seed.line, seed.accepted.sentence) for seed in seeds.seeds] == [(1, CHAIR)]
    assert (seeds.read, seeds.left_out) == (3, {"other_indicator": 1, "repeated": 1})
    lines = tmp_path / "seeds.jsonl"
    lines.write_text(json.dumps({"line": 7, "source": "a.txt", "sentence": CHAIR}) + "\n")
    (seed,) = read_seeds(lines).seeds
    assert (seed.line, seed.source, seed.accepted.offset) == (7, "a.txt", 16)
    text.write_text(f"It rained. {CHAIR} The cook lost her spoon.\n")
    assert len(read_seeds(text, split=True).seeds) == 2
    assert len(read_seeds(text, split=True, limit=1).seeds) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\n \n", "empty"),
        (b'{"sentence": "a"}\n{"masked": "b"}\n', "line 2: .*sentence"),
        (b'{"sentence": "a"}\nplain\n', "line 2: expected a JSON object"),
        (b'{"sentence": "a"}\n[1]\n', "line 2"),
        (b"The nurse \xff\n", "line 1: expected UTF-8, got the byte 0xff"),
    ],
)
def test_a_bad_file_of_seeds_is_named(tmp_path, content, message):
    path = tmp_path / "seeds.jsonl"
    path.write_bytes(content)
    with pytest.raises(FileError, match=message):
        read_seeds(path)


def test_the_reported_bias_is_that_of_the_pronoun_score(tmp_path):
    model = chair_world()
    result = generate(model, [CHAIR], direction="both")
    result.save(tmp_path / "out.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert rows == result.sentences
    values = probabilities(model, [row["masked"] for row in rows])
    scores = bias(values.p_male, values.p_female)
    assert [row["bias_after"] for row in rows] == pytest.approx(scores.tolist(), abs=1e-6)
