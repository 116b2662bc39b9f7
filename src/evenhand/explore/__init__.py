"""The explorer: a local web page that asks models, word vectors and audits while one types.

`subjects` has what is explored; `sentence`, `words`, `run` and `answers` compute what its tabs
show; `worker` is the queue of that work, `server` the web application.
"""
