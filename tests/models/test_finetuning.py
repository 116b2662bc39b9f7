"""Fine-tuning: what is learned from, what is hidden, the loss, and that all families train."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer

from evenhand.errors import FileError, InputError, UnknownNameError
from evenhand.files import to_json
from evenhand.lexicon.pronoun_sentences import pronoun_sentences
from evenhand.models import load
from evenhand.models.finetuning.text import (
    TokenMasker,
    TrainingText,
    batch_of,
    batches,
    collect,
    counterfactual_key,
    held_out,
    masked_loss,
    rewritten,
    token_rows,
)
from evenhand.models.finetuning.training import (
    FinetuneFolder,
    FinetuneSettings,
    _Training,
    finetune,
    train,
)
from evenhand.models.metrics.pronouns import Pronouns
from evenhand.models.pairs import Pair
from evenhand.models.sentences import Sentence

pytestmark = pytest.mark.slow

JOBS = ("nurse", "doctor", "teacher", "engineer")
TEXTS = [
    f"The {job} said {pronoun} {verb} {thing} {number}."
    for number in range(4)
    for job in JOBS
    for pronoun in ("he", "she")
    for verb in ("lost the", "reads a")
    for thing in ("book", "table")
]
MASKED = [f"The {job} lost [MASK] {thing}." for job in JOBS for thing in ("keys", "book", "table")]


def settings(**changed) -> FinetuneSettings:
    usual = {"max_tokens": 3000, "batch": 4, "block": 32, "learning_rate": 5e-3, "epochs": 3}
    usual["evaluations"] = 5
    return FinetuneSettings(**{**usual, **changed})


def material(model, texts=TEXTS, **changed) -> TrainingText:
    chosen = settings(**changed)
    split = collect(texts, held_out=0.2, evaluation=0.2, max_tokens=chosen.max_tokens)
    return TrainingText(model, split, chosen)


def test_all_families_learn_keep_their_ties_and_reload(family, tmp_path):
    model = load(family)
    done = train(model, material(model), tmp_path / "c.safetensors")
    # the fixture's tokenizer numbers its pieces anew in every run: the gain is .45 to 1
    assert done.used.evaluation < done.points[0].evaluation - 0.2
    assert done.points[-1].training < done.points[1].training
    FinetuneFolder(tmp_path).save_model(model, "model")
    before = AutoModelForMaskedLM.from_pretrained(family)
    after = AutoModelForMaskedLM.from_pretrained(tmp_path / "model")
    tied = before.get_output_embeddings().weight is before.get_input_embeddings().weight
    assert tied
    for network in (model.network, after):
        assert network.get_output_embeddings().weight is network.get_input_embeddings().weight
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "model")
    ids = torch.tensor([tokenizer(TEXTS[0])["input_ids"]])
    ours = load(tmp_path / "model").network(input_ids=ids).logits
    assert torch.equal(ours, model.network(input_ids=ids).logits)
    assert torch.equal(ours, after.eval()(input_ids=ids).logits)
    assert not torch.allclose(ours, before.eval()(input_ids=ids).logits, atol=0.1)


def test_weights_in_memory_are_those_on_disk(tmp_path, bert):
    model = load(bert)
    train(model, material(model), tmp_path / "c.safetensors")
    done = finetune(
        bert, TEXTS, settings(held_out=0.2, evaluation=0.2), tmp_path / "run", sentences=MASKED
    )
    saved = load(done.folder / "model").network.state_dict()
    for name, weight in model.network.state_dict().items():
        assert torch.equal(weight, saved[name]), name


def test_the_loss_at_hidden_places_is_that_of_the_whole_head(family):
    model = load(family)
    rows = token_rows(model.tokenizer, [*TEXTS[:3], "He sings."], 32)
    batch = batch_of(rows, range(4), model.tokenizer.pad_token_id)
    hidden = TokenMasker(model.tokenizer, 0.3)(batch, 5)
    assert hidden.attention_mask is not None
    labels = torch.full_like(batch.ids, -100).flatten()
    labels[hidden.positions] = hidden.labels
    model.network.eval()
    plain = model.network(
        input_ids=hidden.shown,
        attention_mask=hidden.attention_mask,
        labels=labels.view_as(batch.ids),
    ).loss
    plain.backward()
    gradients = {
        n: w.grad.clone() for n, w in model.network.named_parameters() if w.grad is not None
    }
    model.network.zero_grad()
    ours = masked_loss(model.network, hidden)
    ours.backward()
    assert float(ours.detach()) == pytest.approx(float(plain.detach()), abs=1e-5)
    for name, weight in model.network.named_parameters():
        if name in gradients:
            assert torch.allclose(weight.grad, gradients[name], atol=1e-5), name


def test_hidden_tokens_are_80_10_10_of_15_percent(bert):
    tokenizer = load(bert).tokenizer
    rows = token_rows(tokenizer, TEXTS * 20, 32)
    batch = batch_of(rows, range(len(rows.ids)), tokenizer.pad_token_id)
    hidden = TokenMasker(tokenizer, 0.15)(batch, 0)
    ids, shown = batch.ids.flatten(), hidden.shown.flatten()
    ordinary = int(batch.ordinary.sum() - (ids[batch.ordinary.flatten()] < 5).sum())
    assert len(hidden.positions) == round(0.15 * ordinary)
    assert torch.equal(hidden.labels, ids[hidden.positions])
    assert len(hidden.positions.unique()) == len(hidden.positions)
    elsewhere = torch.ones(len(ids), dtype=torch.bool)
    elsewhere[hidden.positions] = False
    assert torch.equal(ids[elsewhere], shown[elsewhere])
    assert not torch.isin(hidden.labels, torch.tensor(tokenizer.all_special_ids)).any()
    masked = shown[hidden.positions] == tokenizer.mask_token_id
    left = shown[hidden.positions] == hidden.labels
    n = len(hidden.positions)
    assert abs(float(masked.float().mean()) - 0.8) < 4 * (0.16 / n) ** 0.5
    # a random token is the same one by chance, one in the vocabulary
    assert abs(float(left.float().mean()) - 0.1 - 0.1 / len(tokenizer)) < 4 * (0.09 / n) ** 0.5
    assert torch.equal(TokenMasker(tokenizer, 0.15)(batch, 0).shown, hidden.shown)
    assert not torch.equal(TokenMasker(tokenizer, 0.15)(batch, 1).shown, hidden.shown)


def test_rows_hold_whole_sentences_and_every_token_once(family):
    tokenizer = load(family).tokenizer
    long = "The nurse said that he was late. A teacher reads a book to her. He sings. " * 3
    long = long.strip()
    texts = ["She reads.", long, "the " * 59 + "the"]
    rows = token_rows(tokenizer, texts, 30)
    coded = [tokenizer(text)["input_ids"][1:-1] for text in texts]
    assert [len(ids) <= 30 for ids in rows.ids] == [True] * len(rows.ids)
    assert rows.ids[0].tolist() == tokenizer(texts[0])["input_ids"]
    joined = np.concatenate([ids[1:-1] for ids in rows.ids]).tolist()
    assert joined == [token for ids in coded for token in ids]
    ends = [tokenizer.decode(ids[1:-1]).strip()[-1] for ids in rows.ids]
    assert ends[: ends.index("e")].count(".") == ends.index("e")  # then come the cut ones
    assert {ids[0] for ids in rows.ids} == {tokenizer.cls_token_id}
    assert {ids[-1] for ids in rows.ids} == {tokenizer.sep_token_id}


def test_batches_hold_every_row_once_and_little_padding():
    rng = np.random.default_rng(1)
    lengths = rng.integers(5, 60, size=3000).tolist()
    made = batches(lengths, 1024, rng)
    assert sorted(row for batch in made for row in batch) == list(range(3000))
    padded = [max(lengths[row] for row in batch) * len(batch) for batch in made]
    assert max(padded) <= 1024
    assert sum(padded) < 1.08 * sum(lengths)
    assert made != batches(lengths, 1024, rng)


def test_what_is_found_to_measure_on_is_not_learned_from(bert):
    """A sentence of a held-out document can stand in another document that is learned from."""
    model = load(bert)
    texts = [
        f"The {job} lost {word} {thing} {n}. He reads a book {n % 5}."
        for n in range(30)
        for job, word, thing in (("nurse", "her", "keys"), ("doctor", "his", "book"))
    ]
    texts += [f"{text.partition('.')[0]}. It was late {n}." for n, text in enumerate(texts)]
    split = collect(texts, held_out=0.3, evaluation=0.2, max_tokens=10**6)
    pair = Pair("The nurse lost her keys 1.", "The nurse lost his keys 1.", "stereo", "gender")
    held = held_out(model, split, pairs=[pair])
    measured = {counterfactual_key(sentence.text) for sentence in held.sentences}
    assert measured & split.learned()
    rest = split.without(held.texts())
    assert rest.held_out == split.held_out
    assert 0 < rest.held_out_elsewhere < len(split.training) + len(split.evaluation)
    plain = set(map(counterfactual_key, held.plain))
    assert not (measured | plain | {counterfactual_key(pair.more)}) & rest.learned()
    assert len(measured) == len(held.sentences)


def test_substitution_is_drawn_anew_in_every_epoch_and_seeded(bert):
    texts = [text for text in TEXTS if " he " in text]
    first, second = (rewritten(texts, "substitute", 0, epoch) for epoch in (0, 1))
    swapped = [[" she " in text for text in made] for made in (first, second)]
    assert swapped[0] != swapped[1]
    for made in swapped:
        assert 0.3 < sum(made) / len(made) < 0.7
    assert rewritten(texts, "substitute", 0, 1) == second
    assert rewritten(texts, "substitute", 1, 1) != second
    model = load(bert)
    made = material(model)
    rows = [[ids.tolist() for ids in made.rows(epoch).ids] for epoch in (0, 1, 0)]
    assert rows[0] == rows[2] != rows[1]
    plain = material(model, rewrite="none")
    assert plain.rows(0) is plain.rows(1)


def test_rewriting_covers_swap_and_neutralize():
    text = ["She lost her keys."]
    assert rewritten(text, "swap", 0, 0) == ["He lost his keys."]
    assert rewritten(text, "neutralize", 0, 0) == ["They lost their keys."]
    assert rewritten(text, "none", 0, 0) == text


def test_training_stops_when_the_evaluation_gets_no_better(bert, tmp_path):
    model = load(bert)
    made = material(
        model,
        learning_rate=3e-2,
        max_tokens=60_000,
        epochs=200,
        evaluations=60,
        patience=2,
        rewrite="none",
    )
    done = train(model, made, tmp_path / "c.safetensors")
    assert done.ended == "patience"
    losses = [point.evaluation for point in done.points[1:]]
    best = losses.index(min(losses))
    assert done.used == done.points[1 + best]
    assert len(losses) == best + 3
    # and the model has the weights of the best, not of the last
    model.network.eval()
    total = count = 0
    with torch.inference_mode():
        for hidden in made.evaluation:
            total += float(masked_loss(model.network, hidden)) * len(hidden.labels)
            count += len(hidden.labels)
    assert total / count == pytest.approx(done.used.evaluation, abs=1e-6)


def scripted(monkeypatch, *means, spread=0.01):
    """Watched sentences have these mean biases, one per evaluation; the last one stays."""
    left = list(means)

    def answer(self, model, sentences, *run):
        measured = measure(self, model, sentences, *run)
        if run:  # before and after: only what is watched is scripted
            return measured
        mean = left.pop(0) if len(left) > 1 else left[0]
        noise = np.linspace(-spread, spread, len(sentences))
        return replace(measured, items={"full_bias": mean + noise})

    measure = Pronouns.measure
    monkeypatch.setattr(Pronouns, "measure", answer)


WATCHED = [Sentence(text) for text in MASKED]


@pytest.mark.parametrize(
    ("means", "chosen", "ended"),
    [
        ((0.7, 0.65, 0.56, 0.45), 2, "ideal"),
        ((0.3, 0.45, 0.42, 0.44, 0.51), 1, "ideal"),  # from below; the nearest is not the last
        ((0.7, 0.45), 0, "ideal"),  # too late at the first evaluation
        ((0.7, 0.6, 0.5, 0.49), 2, "ideal"),  # at the ideal is not beyond it
        ((0.7, 0.68, 0.66, 0.64), None, "max_tokens"),
    ],
)
def test_training_stops_before_the_bias_changes_sides(
    bert, tmp_path, monkeypatch, means, chosen, ended
):
    scripted(monkeypatch, *means)
    model = load(bert)
    done = train(model, material(model), tmp_path / "c.safetensors", watched=WATCHED)
    assert done.ended == ended
    biases = [point.bias for point in done.points]
    assert biases[: len(means)] == pytest.approx(means)
    if chosen is None:  # as without watching: the points for the bias alone do not count
        alone = load(bert)
        usual = train(alone, material(alone), tmp_path / "a.safetensors")
        assert (done.used.step, done.used.evaluation) == (usual.used.step, usual.used.evaluation)
        assert {point.step for point in usual.points} < {point.step for point in done.points}
        return
    assert len(biases) == len(means)
    assert done.used == done.points[chosen]
    # and the model has the weights of that point
    other = load(bert)
    same = train(other, material(other), tmp_path / "o.safetensors", until=done.used.step)
    assert (same.ended, same.step, same.used.step) == ("steps", done.used.step, done.used.step)
    weights = dict(other.network.named_parameters())
    for name, weight in model.network.named_parameters():
        assert torch.equal(weight, weights[name])


def test_weights_between_two_evaluations_are_used_where_the_bias_passed(
    bert, tmp_path, monkeypatch
):
    scripted(monkeypatch, 0.7, 0.6, 0.45, 0.53, 0.48, 0.52, 0.51, 0.505)
    model = load(bert)
    done = train(model, material(model), tmp_path / "c.safetensors", watched=WATCHED)
    assert (done.ended, done.step, done.used.step) == ("ideal", 2, 2)
    assert [point.bias for point in done.points] == pytest.approx([0.7, 0.6, 0.45, 0.505])
    # .5 is before it, .75 is not, .625, .6875 and .71875 are
    assert done.used.share == 0.71875
    ends = []
    for step in (1, 2):
        other = load(bert)
        train(other, material(other), tmp_path / f"{step}.safetensors", until=step)
        ends.append(dict(other.network.named_parameters()))
    for name, weight in model.network.named_parameters():
        first, second = (end[name] for end in ends)
        torch.testing.assert_close(weight, first + 0.71875 * (second - first))
    total = count = 0
    with torch.inference_mode():
        for hidden in material(model).evaluation:
            total += float(masked_loss(model.network, hidden)) * len(hidden.labels)
            count += len(hidden.labels)
    assert total / count == pytest.approx(done.used.evaluation, abs=1e-5)


def test_a_bias_on_no_clear_side_does_not_stop_the_training(bert, tmp_path, monkeypatch):
    scripted(monkeypatch, 0.52, 0.49, 0.45, spread=0.4)
    model = load(bert)
    done = train(model, material(model), tmp_path / "c.safetensors", watched=WATCHED)
    assert (done.ended, done.side) == ("max_tokens", 0)


def test_a_run_that_stops_at_the_ideal_resumes_and_says_so(bert, tmp_path, monkeypatch):
    means = (0.7, 0.65, 0.56, 0.45)
    watched = [f"The {job} said [MASK] has keys {i}." for job in JOBS for i in range(6)]
    scripted(monkeypatch, *means)
    kept = finetune(
        bert, TEXTS, settings(), tmp_path / "a", sentences=MASKED[:2], watched=watched, control=True
    )
    notes = " ".join(kept.notes)
    assert "the mean bias of 24 watched sentences went from 0.700 to the other side of .5" in notes
    assert kept.training["watched_bias"]["after"] == pytest.approx(0.56)
    assert kept.data["watched_sentences"] == 24
    assert kept.control_curve[-1]["step"] == kept.training["best"]["step"]  # as long a training
    assert [point["bias"] for point in kept.curve] == pytest.approx(means)

    scripted(monkeypatch, *means)
    stopped = {"at": (kept.curve[2]["tokens"] + kept.curve[3]["tokens"]) // 2}

    def interrupt(what, done, total, words):
        if what == "training" and done >= stopped["at"]:
            stopped["at"] = 10**9
            raise KeyboardInterrupt

    monkeypatch.setattr("evenhand.training.INTERVAL", -1.0)  # a checkpoint at every step
    monkeypatch.setattr("evenhand.training.SHARE", 1e9)
    given = {"sentences": MASKED[:2], "watched": watched}
    with pytest.raises(KeyboardInterrupt):
        finetune(bert, TEXTS, settings(), tmp_path / "b", progress=interrupt, **given)
    resumed = finetune(bert, TEXTS, settings(), tmp_path / "b", **given)
    assert resumed.training == kept.training


def test_what_is_watched_is_not_measured_or_learned_from(bert, tmp_path):
    with pytest.raises(InputError, match="watched sentences: expected 20 or more"):
        finetune(bert, TEXTS, settings(), tmp_path / "a", sentences=MASKED, watched=MASKED)
    with pytest.raises(InputError, match="expected stop 'ideal'"):
        finetune(bert, TEXTS, settings(stop="loss"), tmp_path / "b", watched=MASKED)
    with pytest.raises(InputError, match="measure: expected"):
        finetune(bert, TEXTS, settings(measure=False), tmp_path / "c", watched=MASKED)
    few = finetune(bert, TEXTS, settings(), tmp_path / "d", sentences=MASKED)
    assert few.data["watched_sentences"] == 0
    assert "not watched for the ideal" in " ".join(few.notes)
    plain = finetune(bert, TEXTS, settings(rewrite="none"), tmp_path / "e", sentences=MASKED)
    assert not plain.notes


def test_it_ends_with_the_epochs_or_with_the_tokens(bert, tmp_path):
    model = load(bert)
    few = material(model, epochs=2, max_tokens=10**6)
    done = train(model, few, tmp_path / "a.safetensors")
    assert done.ended == "epochs"
    assert done.points[-1].epoch == pytest.approx(2, abs=0.1)
    done = train(load(bert), material(model, max_tokens=1500), tmp_path / "b.safetensors")
    assert done.ended == "max_tokens"
    assert 1500 <= done.tokens < 1500 + 4 * 32


def averaging(**changed) -> dict:
    return {"average": "weights", "rewrite": "none", "max_tokens": 10**6, **changed}


@pytest.mark.parametrize("changed", [{"epochs": 3}, {"max_tokens": 300}])
def test_the_mean_of_the_weights_after_each_epoch_is_used(bert, tmp_path, monkeypatch, changed):
    """Where not even one epoch was trained, it is that of the last weights alone."""
    seen = []
    add = _Training.add_to_mean

    def watched(self):
        seen.append({n: w.detach().clone() for n, w in self.weights.items()})
        add(self)

    monkeypatch.setattr(_Training, "add_to_mean", watched)
    model = load(bert)
    made = material(model, **averaging(**changed))
    done = train(model, made, tmp_path / "c.safetensors")
    assert len(seen) == done.averaged == changed.get("epochs", 1)
    for name, weight in model.network.named_parameters():
        expected = torch.stack([weights[name] for weights in seen]).mean(dim=0)
        torch.testing.assert_close(weight.detach(), expected, atol=1e-6, rtol=1e-5)
    assert (seen[0]["bert.embeddings.word_embeddings.weight"] != 0).any()
    assert done.used == done.points[-1]
    last, before = done.points[-1], done.points[-2]
    assert (last.step, last.training) == (before.step, None)
    if len(seen) > 1:
        assert last.evaluation != before.evaluation
    else:
        assert last.evaluation == pytest.approx(before.evaluation)


def test_a_run_that_averages_resumes_with_the_same_weights(bert, tmp_path, monkeypatch):
    chosen = settings(**averaging(measure=False))
    kept = finetune(bert, TEXTS, chosen, tmp_path / "a")
    assert kept.training["averaged"] == 3
    assert "the mean of those after each of 3 epochs" in " ".join(kept.notes)
    stopped = {"at": 0.8 * kept.training["tokens"]}

    def interrupt(what, done, total, words):
        if what == "training" and done >= stopped["at"]:
            stopped["at"] = 10**9
            raise KeyboardInterrupt

    monkeypatch.setattr("evenhand.training.INTERVAL", -1.0)  # a checkpoint at every step
    monkeypatch.setattr("evenhand.training.SHARE", 1e9)
    with pytest.raises(KeyboardInterrupt):
        finetune(bert, TEXTS, chosen, tmp_path / "b", progress=interrupt)
    resumed = finetune(bert, TEXTS, chosen, tmp_path / "b")
    assert resumed.training == kept.training
    weights = [load(tmp_path / name / "model").network.state_dict() for name in "ab"]
    for name, weight in weights[0].items():
        assert torch.equal(weight, weights[1][name])


def test_sentences_of_another_kind_are_measured_and_not_learned_from(bert, tmp_path):
    of_another_kind = pronoun_sentences().sentences
    swapped_texts = [text.replace("[MASK]", "she") for text in of_another_kind[:20]]
    done = finetune(bert, [*TEXTS, *swapped_texts], settings(), tmp_path / "run", sentences=MASKED)
    assert 100 < done.data["built_in_sentences"] <= len(of_another_kind)  # those it can score
    assert done.data["held_out_elsewhere"] >= 10  # all but those of the held-out documents
    for query in ("mean bias", "mean |bias - .5|", "mean bias, top 10"):
        first, second = done.change(query), done.change(f"{query}, built-in sentences")
        assert (first.details["sentences"], second.details["sentences"]) == ("given", "built-in")
    first, second = (
        f"{done.change(name).change.value:+.3f}"
        for name in ("mean bias", "mean bias, built-in sentences")
    )
    assert f"{first} [" in done.sentence
    assert f"; {second} [" in done.sentence
    assert done.to_dict()["sentence"] == done.sentence
    alone = finetune(
        bert, TEXTS, settings(max_tokens=500), tmp_path / "alone", sentences=of_another_kind
    )
    assert alone.data["built_in_sentences"] == 0
    assert "built-in" not in "".join(change.query for change in alone.changes)


def test_a_done_run_is_reported_again_and_another_is_refused(bert, tmp_path, monkeypatch):
    folder = tmp_path / "run"
    done = finetune(bert, TEXTS, settings(), folder, sentences=MASKED)
    assert not (folder / "checkpoint").exists()
    message = json.loads((folder / "results.json").read_text())
    assert message["changes"][0]["paired"] == len(MASKED)
    with monkeypatch.context() as patch:
        patch.setattr("evenhand.models.finetuning.training.train", None)
        again = finetune(bert, TEXTS, settings(), folder, sentences=MASKED)
    assert to_json(again.to_dict()) == to_json(done.to_dict())
    with pytest.raises(FileError, match=r"another run \(learning_rate: 0.005 there, 0.001 now\)"):
        finetune(bert, TEXTS, settings(learning_rate=1e-3), folder, sentences=MASKED)
    with pytest.raises(FileError, match="another text"):
        finetune(bert, TEXTS[:-9], settings(), folder, sentences=MASKED)
    with pytest.raises(FileError, match="another sentences"):
        finetune(bert, TEXTS, settings(), folder, sentences=MASKED[:-1])
    changed = finetune(
        bert, TEXTS, settings(learning_rate=1e-3), folder, sentences=MASKED, restart=True
    )
    assert changed.to_dict() != done.to_dict()


def test_the_change_is_that_of_the_items(bert, tmp_path):
    import pandas as pd

    sentences = [Sentence(text, "his") for text in MASKED]
    done = finetune(bert, TEXTS, settings(), tmp_path / "run", sentences=sentences, control=True)
    table = pd.read_csv(tmp_path / "run" / "items.csv")
    assert list(dict.fromkeys(table["sentences"])) == ["given", "built-in"]
    other = table[table["sentences"] == "built-in"]
    assert len(other) == done.data["built_in_sentences"] > 100
    assert set(other["masked"]) <= set(pronoun_sentences().sentences)
    built_in = done.change("mean bias, built-in sentences")
    assert built_in.paired == len(other)
    assert built_in.before.value == pytest.approx(other["bias_before"].mean())
    assert built_in.after.value == pytest.approx(other["bias_after"].mean())
    assert built_in.details["sentences"] == "built-in"
    items = table[table["sentences"] == "given"]
    assert items["masked"].tolist() == MASKED
    mean = done.change("mean bias")
    assert mean.before.value == pytest.approx(items["bias_before"].mean())
    assert mean.after.value == pytest.approx(items["bias_after"].mean())
    assert mean.change.value == pytest.approx((items["bias_after"] - items["bias_before"]).mean())
    distance = done.change("mean |bias - .5|")
    assert distance.after.value == pytest.approx((items["bias_after"] - 0.5).abs().mean())
    assert mean.change.low <= mean.change.value <= mean.change.high
    difference = next(c for c in done.against_control if c.query == "mean bias")
    assert difference.change.value == pytest.approx(
        (items["bias_after"] - items["bias_control"]).mean()
    )
    ratio = done.change("pseudo-perplexity")
    assert ratio.change.value == pytest.approx(ratio.after.value / ratio.before.value)
    control = load(tmp_path / "run" / "control" / "model")
    assert control.fingerprint != load(tmp_path / "run" / "model").fingerprint
    curve = pd.read_csv(tmp_path / "run" / "curve.csv")
    assert curve["evaluation"].tolist() == [point["evaluation"] for point in done.curve]
    assert not Path(tmp_path / "run" / "checkpoint").exists()


def test_sentences_that_cannot_be_scored_are_reported_before_training(bert, tmp_path, monkeypatch):
    long = [f"The {job} lost [MASK] book{' the' * 600}." for job in JOBS]
    with monkeypatch.context() as patch:
        patch.setattr("evenhand.models.finetuning.training.train", None)
        with pytest.raises(InputError, match=r"2 or more to measure on, got 0 \(given; 4 cannot"):
            finetune(bert, TEXTS, settings(), tmp_path / "run", sentences=long)
    done = finetune(
        bert, TEXTS, settings(), tmp_path / "run", sentences=[*long, *MASKED, *MASKED[:3]]
    )
    assert done.data["sentences"] == done.change("mean bias").paired == len(MASKED)
    assert (done.data["sentences_refused"], done.data["sentences_twice"]) == (4, 3)
    assert "4 sentences are left out: the model cannot score them" in done.notes


def test_a_failed_attempt_does_not_claim_the_folder(bert, tmp_path):
    folder = tmp_path / "run"
    with pytest.raises(InputError, match="to measure on"):
        finetune(bert, TEXTS, settings(), folder, sentences=MASKED[:1])
    assert not any(folder.iterdir())

    def stop(what, *_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):  # while the model is measured, nothing learned yet
        finetune(bert, TEXTS, settings(), folder, sentences=MASKED, progress=stop)
    assert (folder / "run.json").is_file()
    done = finetune(bert, TEXTS, settings(seed=1), folder, sentences=MASKED)
    (folder / "figures").mkdir()
    (folder / "figures" / "loss.svg").write_text("old")
    with pytest.raises(InputError, match="to measure on"):  # and a finished run is not cleared
        finetune(bert, TEXTS, settings(), folder, sentences=MASKED[:1], restart=True)
    assert (folder / "results.json").is_file()
    with pytest.raises(FileError, match=r"complete, with intervals of prob 0.95, not 0.9"):
        finetune(bert, TEXTS, settings(seed=1, prob=0.9), folder, sentences=MASKED)
    again = finetune(
        bert, TEXTS, settings(seed=1, prob=0.9), folder, sentences=MASKED, restart=True
    )
    assert not (folder / "figures").exists()
    wide, narrow = (one.change("mean bias").change for one in (done, again))
    assert wide.low < narrow.low < narrow.high < wide.high


def test_a_model_that_no_run_made_is_left_alone(bert, tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "mine.txt").write_text("mine")
    for restart in (False, True):
        with pytest.raises(FileError, match="of no run of this command"):
            finetune(bert, TEXTS, settings(), tmp_path, sentences=MASKED, restart=restart)
    assert (tmp_path / "model" / "mine.txt").read_text() == "mine"


BIOGRAPHIES = [f"Ada worked in Rome for {n} years. She won {n + 2} prizes." for n in range(60)]


def test_any_text_is_learned_from_and_measured_on_the_built_in_sentences(bert, tmp_path):
    """Biographies name the person: the structural filter accepts none of their sentences."""
    done = finetune(bert, BIOGRAPHIES, settings(max_tokens=500), tmp_path / "run")
    built_in = pronoun_sentences().sentences
    assert 100 < done.data["sentences"] <= len(built_in)  # those it can score
    assert done.data["built_in_sentences"] == 0
    assert done.change("mean bias").details["sentences"] == "built-in"
    assert "sentences of another kind (built-in)" in done.sentence
    [note] = [note for note in done.notes if "built-in" in note]
    assert "0 can be measured on" in note
    given = finetune(
        bert, BIOGRAPHIES, settings(max_tokens=500), tmp_path / "given", sentences=built_in
    )
    assert given.change("mean bias").change == done.change("mean bias").change


def test_tuning_alone(bert, tmp_path):
    """Nothing is held out, and no token is capped."""
    alone = settings(measure=False, max_tokens=0, epochs=2)
    done = finetune(bert, BIOGRAPHIES, alone, tmp_path / "run", control=True)
    assert done.changes == done.control == done.against_control == ()
    assert done.crows is None
    assert done.sentence == "not measured"
    assert (done.data["held_out"], done.data["sentences"]) == (0, 0)
    assert done.data["training"] + done.data["evaluation"] == len(BIOGRAPHIES)
    assert done.training["ended"] == "epochs"
    assert done.training["planned_tokens"] == 2 * done.training["epoch_tokens"]
    assert done.control_curve
    assert (tmp_path / "run" / "model" / "config.json").is_file()
    assert not (tmp_path / "run" / "items.csv").exists()
    assert finetune(bert, BIOGRAPHIES, alone, tmp_path / "run", control=True) == done
    with pytest.raises(InputError, match="measure: expected sentences and pairs"):
        finetune(bert, BIOGRAPHIES, alone, tmp_path / "other", sentences=MASKED)


def test_too_little_text_is_reported(bert, tmp_path):
    with pytest.raises(InputError, match="expected 2 or more sentences for the perplexity"):
        finetune(
            bert,
            ["One."],
            settings(held_out=1e-6, evaluation=0.5),
            tmp_path / "run",
            sentences=MASKED,
        )


def test_settings_are_checked():
    with pytest.raises(UnknownNameError, match="substitute"):
        FinetuneSettings(rewrite="substitue")
    for wrong in ({"block": 2}, {"mask": 0}, {"learning_rate": 0}, {"held_out": 0.97}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            FinetuneSettings(**wrong)
    with pytest.raises(InputError, match="stop=: expected loss with the mean of the weights"):
        FinetuneSettings(average="weights")


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    from small_models import made

    folder = tmp_path_factory.mktemp("finetune-bert")
    tokenizer, network = made("bert")
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_substitution_moves_mini_towards_one_half_and_plain_text_does_not(tmp_path, monkeypatch):
    monkeypatch.setattr("evenhand.models.finetuning.text.WORK", 10_000)
    people = (
        "nurse",
        "doctor",
        "guard",
        "clerk",
        "cook",
        "baker",
        "pilot",
        "judge",
        "coach",
        "singer",
        "dancer",
        "lawyer",
    )
    acts = (
        "raises {} arm",
        "drops {} hat",
        "opens {} book",
        "wipes {} face",
        "lifts {} bag",
        "turns {} head",
        "plays {} drum",
    )
    places = ("by the door", "in the hall", "near the car", "on the stage", "at the gate")
    texts = [
        f"The {who} {act.format('his')} {place}."
        for who in people
        for act in acts
        for place in places
    ]
    done = finetune(
        "mini", texts, FinetuneSettings(max_tokens=20_000), tmp_path / "run", control=True
    )
    bias = done.change("mean bias")
    assert bias.paired >= 20
    assert bias.before.value > 0.6
    assert bias.effect.startswith("nearer the ideal")
    assert done.change("mean bias, built-in sentences").paired == 120
    assert done.change("mean |bias - .5|").change.high < 0
    control, difference = done.control[0], done.against_control[0]
    assert control.after.value > bias.before.value  # text about men alone
    assert difference.change.high < 0


def test_mini_stops_at_the_ideal_where_it_would_overshoot(tmp_path, monkeypatch):
    monkeypatch.setattr("evenhand.models.finetuning.text.WORK", 2000)
    people = ("nurse", "doctor", "guard", "clerk", "cook", "baker", "pilot", "judge", "coach")
    acts = ("raises {} arm", "drops {} hat", "opens {} book", "wipes {} face", "lifts {} bag")
    places = ("by the door", "in the hall", "near the car", "on the stage", "at the gate")
    texts = [f"The {w} {a.format('his')} {p}." for w in people for a in acts for p in places]
    usual = {"rewrite": "swap", "max_tokens": 5000, "evaluations": 10, "evaluation": 0.15}
    usual |= {"batch": 1, "learning_rate": 2e-5}
    done, overshot = (
        finetune("mini", texts, FinetuneSettings(stop=stop, **usual), tmp_path / stop)
        for stop in ("ideal", "loss")
    )
    assert done.training["ended"] == "ideal"
    bias = done.change("mean bias")
    assert 0.5 <= done.training["watched_bias"]["after"] < 0.52
    assert abs(bias.after.value - 0.5) < 0.15  # other sentences than those watched
    assert bias.effect.startswith("nearer the ideal")
    assert [point["step"] for point in done.curve[:3]] == [0, 1, 2]  # often at first
    past = overshot.change("mean bias")
    assert past.after.value < 0.3  # all persons of the text are women
    assert past.effect == "further from the ideal, on its other side"
