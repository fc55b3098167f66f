"""Fabrics in the formats of other tools: SimAI topologies, node-link JSON of networkx, Graphviz, containerlab."""
