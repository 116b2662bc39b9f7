"""The explorer: a local web page that asks models, word vectors and audits while one types.

`subjects` has what is explored, `sentence`, `words` and `run` compute what its three tabs show,
`worker` is the queue of that work, `server` the web application.
"""
