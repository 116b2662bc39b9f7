"""The metrics of word vectors: one file each, with declaration, formula and source.

`evenhand.instruments` finds them by looking into this folder; nothing lists them.
"""
