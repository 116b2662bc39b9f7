"""Labelled texts for few-shot classification: the data set, and how one is read from a file."""

from evenhand.fewshot.data_reading import read
from evenhand.fewshot.data_set import FEMALE, MALE, UNKNOWN, Dataset, gender_code

__all__ = ["FEMALE", "MALE", "UNKNOWN", "Dataset", "gender_code", "read"]
