"""What the benchmarks of the simulation at line rate are made of: traffic, theory, cases, and csg-htsim beside it."""
