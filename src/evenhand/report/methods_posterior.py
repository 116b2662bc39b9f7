"""The Bayesian model as the page's appendix explains it."""

from __future__ import annotations

from evenhand.report.methods import Method

__all__ = ["METHODS"]

METHODS: dict[str, Method] = {
    "posterior": Method(
        "Bayesian contrast",
        "How much nearer is a stereotype to its own class than to others, and how sure is that?",
        "distance(i, j) = t_j + u_i + d_i · [j is a stereotype of i's class] + s_i · [j is a "
        "stereotype] + h_i · [j is about people] + error; t_j normal about the mean of its kind of "
        "word, d_i about d, the others about 0. Priors: means N(1, 0.5), d N(0, 0.5), error "
        "half-Cauchy(1), other spreads half-normal(0.25). Range: the shortest that holds the given "
        "probability. The spreads are sampled by 16 chains, all else exactly, so there are no "
        "divergences to count",
        "our own, after Dobrzeniecka 2021",
    ),
    "posterior_thesis": Method(
        "Published model, coefficients",
        "What would a model say that takes all distances as independent?",
        "distance(i, j) = m_i + c[kind of j for i] + error; m_i N(1, 0.5), c N(0, 0.5), error "
        "half-Cauchy(1)",
        "Dobrzeniecka 2021",
    ),
    "posterior_check": Method(
        "Predictive check",
        "Would the model have made such distances?",
        "intra-class correlation by attribute of what words and kinds leave over, in the data and "
        "in 400 tables drawn from the fitted model, of which the middle 99 % are shown",
        "one-way intra-class correlation",
    ),
    "posterior_calibration": Method(
        "Calibration",
        "Does the range hold the truth as often as it promises, with as many words as here?",
        "share of simulated tables (same words and stereotypes, spreads at their posterior "
        "medians, no control words) whose range of d holds the known truth, and share whose range "
        "excludes 0; Wilson intervals",
        "our own",
    ),
    "posterior_draws": Method(
        "R-hat and effective draws",
        "Did the chains agree, and how many independent draws are they worth?",
        "rank-normalised split R-hat and the smaller of bulk and tail effective sample size, the "
        "worst over all quantities",
        "Vehtari, Gelman, Simpson, Carpenter & Bürkner 2021",
    ),
}
