r"""Short biographies of people in 28 occupations, with a gender bias that is known.

The occupations and their shares of women are those of Table 3 of the source report D0 (El Zein
2021). The text of a person never has the name of an occupation in it. What gender does is this:

1. A person's *recorded* gender is a woman's with probability $1/2 + \mathrm{shares}
   (\mathrm{share}_c - 1/2)$ in occupation $c$.
2. The text *tells of* the recorded gender with probability `leak`, else of the one that a fair coin
   shows. Pronouns, title, first name and words such as chairwoman all follow the gender told.
3. Where a sentence has a wording typical of women and one typical of men (knitting or woodwork),
   it has that of the gender told with probability `wording`, else a fair coin takes the side. No
   list of gendered words swaps or removes these.
4. Nothing else depends on gender. A label is wrong with probability `label_noise`, any other
   occupation being as likely.

So the whole text depends on the recorded gender through the gender told alone. At leak 0 the text
is independent of the recorded gender given the occupation, and a text and its twin (the same draws,
the other gender told) are exchangeable. Whatever the classifier, and however biased its encoder,
every contrast of recorded genders within an occupation is then zero in expectation: the
association $\log p(c \mid x) / p(c \mid x')$, the accuracies of pro- and anti-stereotypical texts,
F1 by gender. (Sets pooled over occupations differ in which occupations they hold: weigh the
occupations alike.) Above 0, `Biographies.pull` has the exact bias of the text.
"""

from evenhand.simulate.biographies.drawing import biographies
from evenhand.simulate.biographies.result import Biographies

__all__ = ["Biographies", "biographies"]
