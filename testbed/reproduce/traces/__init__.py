"""The trace evaluation of Crux: replays on fabrics of 2,000 GPUs."""
