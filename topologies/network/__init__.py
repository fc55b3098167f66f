"""How packets are to be carried: over which paths, and how fast their senders may be."""
