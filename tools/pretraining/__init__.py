"""How a small BERT is pretrained from running text: `tools/pretrain.py` is the command."""
