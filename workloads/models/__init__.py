"""Models of deep learning: their parameters, compute and messages."""
