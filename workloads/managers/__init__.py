"""Cluster managers: which job starts when, on how many GPUs, and on which; four plug-in points behind one `decide`."""
