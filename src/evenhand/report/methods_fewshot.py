"""What is measured of few-shot classifiers, in the reader's words."""

from __future__ import annotations

from evenhand.report.methods import Method

__all__ = ["METHODS"]

D0 = "El Zein 2021"

METHODS = {
    "fewshot_accuracy": Method(
        "Few-shot accuracy",
        "How often is a text of a class never trained on told right, from a few texts of it?",
        "share of test queries whose likeliest class is theirs, over episodes of C classes with K "
        "texts given of each; interval for new classes: jackknife over test classes, episodes and "
        "class splits, Student t",
        "Vinyals et al. 2016; the interval is our own",
    ),
    "fewshot_floor": Method(
        "Counting words",
        "How far does one get without any network?",
        "nearest class mean of TF-IDF vectors of words and word pairs, reduced; same episodes",
        "our own",
    ),
    "fewshot_association": Method(
        "Few-shot association",
        "Is the right class likelier for the version of a text that fits the stereotype?",
        "mean over classes of log p(true class | pro) - log p(true class | anti); pro: a man's "
        "version in a class with more men, a woman's in one with more women; anti: its twin with "
        "gendered words and names swapped",
        D0,
    ),
    "fewshot_epsilon": Method(
        "Accuracy gap (ε)",
        "Are the versions that fit the stereotype told right more often?",
        "mean over classes of the accuracy on the pro- less that on the anti-stereotypical "
        "versions of the same texts",
        f"{D0}, there without its sign",
    ),
    "fewshot_skew": Method(
        "Skew",
        "Do men's versions of texts do better than women's?",
        "(a - b) / 2; a, b the mean of F1 on pro- less F1 on anti-stereotypical versions over "
        "classes with more men, with more women",
        f"{D0}, without the part that is only how much easier one side's classes are",
    ),
    "fewshot_stereotype": Method(
        "Stereotype",
        "Do versions that fit the stereotype do better in F1?",
        "(a + b) / 2, a and b as for the skew",
        f"{D0}, without the part that is only how much easier one side's classes are",
    ),
    "fewshot_chance": Method(
        "p of chance",
        "Would a classifier that does not care for gender read as much in these classes?",
        "share of 2,000 tosses with a value at least as far from 0, where a coin for each text "
        "says which of its two versions counts as pro-stereotypical",
        "our own",
    ),
    "fewshot_change": Method(
        "Change by a mitigation",
        "Is there less bias with the mitigation than without, on the same texts?",
        "measure after less measure before; interval: jackknife of the difference, paired on "
        "classes and episodes",
        "our own",
    ),
}
