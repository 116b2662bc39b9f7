"""A text classifier on real biographies, measured by gender: the run of docs/guides/classifier.md.

    python benchmarks/classifier.py wikibios.csv.gz -o OUT

A logistic regression on words predicts occupations of more than a hundred people; half of the texts
are for training. OUT gets predictions.csv (the other half) and answers.csv (a sample of it with
counterfactual versions), which `evenhand classifier` measures.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import evenhand as eh

SAMPLE = 2000


def main() -> None:
    """Train, predict, and answer the versions of some texts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data")
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--text", default="text")
    parser.add_argument("--label", default="occupation")
    parser.add_argument("--gender", default="gender")
    options = parser.parse_args()
    table = pd.read_csv(options.data).dropna(subset=[options.text, options.label, options.gender])
    many = table[options.label].value_counts()
    table = table[table[options.label].isin(many[many > 100].index)].reset_index(drop=True)
    rng = np.random.default_rng(0)
    train = rng.random(len(table)) < 0.5
    model = make_pipeline(
        TfidfVectorizer(min_df=3, sublinear_tf=True), LogisticRegression(C=10, max_iter=300)
    )
    model.fit(table[options.text][train], table[options.label][train])
    test = table[~train].reset_index(drop=True)
    found = eh.classifier.predict(model, test[options.text].tolist(), batch=4096)
    options.out.mkdir(parents=True, exist_ok=True)
    frame = pd.DataFrame(
        {
            "y_true": test[options.label],
            "y_pred": found.pred,
            "gender": test[options.gender],
            **{f"p {name}": np.round(own, 5) for name, own in found.scores.items()},
        }
    )
    frame.to_csv(options.out / "predictions.csv", index=False)
    print(f"{len(test):,} texts, accuracy {(frame.y_true == frame.y_pred).mean():.3f}")
    chosen = np.sort(rng.choice(len(test), SAMPLE, replace=False))
    texts = test[options.text][chosen].tolist()
    rows = [
        {"item": int(i), "version": version, "text": text, "row": i}
        for i, own in zip(chosen, eh.text.counterfactuals(texts), strict=True)
        for version, text in own.items()
    ]
    answers = pd.DataFrame(rows)
    answered = eh.classifier.predict(model, answers["text"].tolist(), batch=4096)
    answers["y_true"] = test[options.label][answers["row"]].to_numpy()
    answers["gender"] = test[options.gender][answers["row"]].to_numpy()
    answers["y_pred"] = answered.pred
    for name, own in answered.scores.items():
        answers[f"p {name}"] = np.round(own, 5)
    answers.drop(columns=["text", "row"]).to_csv(options.out / "answers.csv", index=False)


if __name__ == "__main__":
    main()
