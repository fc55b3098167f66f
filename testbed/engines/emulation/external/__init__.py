"""Real programs on the emulated hosts: their processes, connections and iterations."""
