"""Experiments of papers: the paper's numbers beside ours. A table per paper or topic lists them."""
