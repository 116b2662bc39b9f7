"""The instruments of few-shot classifiers, one file each."""
