"""The instruments of answers, one file each."""
