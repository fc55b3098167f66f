"""Generators of fabrics for GPU clusters: one ToR per rail, dual ToRs, dual planes, Alibaba Lingjun."""
