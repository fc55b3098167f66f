"""MonkeyTree (arXiv 2602.08296): few fragments of jobs that cross racks under each ToR."""
