"""What is measured of a masked language model, in the reader's words."""

from __future__ import annotations

from evenhand.report.methods import Method

__all__ = ["METHODS"]

METHODS = {
    "pronouns": Method(
        "Pronoun score",
        "Which gender does the model put where a person's pronoun is hidden?",
        "P(male) / (P(male) + P(female)), P the probability of the likeliest word of that gender "
        "at the mask; mean over the sentences where one of them has at least 5 %. Without bias "
        "0.5. Interval: studentised bootstrap over sentences; p: sign test, as many above as below",
        "Ye et al. 2021, there among the ten likeliest words; here over the whole vocabulary",
    ),
    "professions": Method(
        "Profession association",
        "Does a profession call for a man or for a woman?",
        "log(p_target / p_prior) of the man's word less that of the woman's; p_target with the "
        "profession shown, p_prior with it masked. Without bias 0. Interval: Student t over "
        "templates, professions and pairs, each with effects of its own; p: two-sided t test",
        "Kurita et al. 2019; Bartl, Nissim & Gatt 2020",
    ),
    "phrases": Method(
        "Phrase WEAT",
        "Do phrases of what people do lie nearer the words for one gender?",
        "WEAT's effect size d on the model's sentence embeddings (mean of the last layer), from "
        "which the mean embedding of control phrases is subtracted; raw: without that. Without "
        "bias 0. Interval: noncentral t or jackknife over the phrases, the wider; p: permutation "
        "of the phrases between the groups",
        "Caliskan, Bryson & Narayanan 2017; phrases as in Ye et al. 2021",
        "effect",
    ),
    "phrases_pronouns": Method(
        "Phrases and pronouns",
        "Do a phrase's embedding and the pronoun predicted beside it agree?",
        "Pearson's r of the association with the mean log odds of a male pronoun, each side of "
        "each set at its own mean. Interval: Fisher's or the bootstrap's, the wider; p: "
        "permutation of the phrases",
        "our own; left open by Ye et al. 2021",
    ),
    "finetune": Method(
        "Before and after fine-tuning",
        "Does training on text with swapped genders take the bias away, and what does it cost?",
        "continued masked-language-model training on the data, the gendered words of half of the "
        "texts swapped; the same sentences measured before and after, differences paired",
        "Ye et al. 2021; Maudslay et al. 2019",
    ),
}
