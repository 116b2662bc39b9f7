"""Few-shot classification: classes never seen before, from a handful of texts of each.

`read` gives the labelled texts, and `run` trains a network on many small tasks, tests it on new
classes, measures accuracy and gender bias and saves everything in a folder:

>>> import evenhand as eh
>>> data = eh.fewshot.read("simulated:per_class=20")
>>> settings = eh.fewshot.RunSettings(ways=3, shots=2, episodes="10000/600/600")
>>> settings.name
'proto-euclidean'

The steps are there too: `make_splits` divides the classes, `sample` draws episodes,
`networks.make` gives one of nine classifiers, `accuracy` and `bias` measure their answers.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
