"""What the trace figures of Crux take as given: which inputs were chosen, which were fitted, and to what."""
