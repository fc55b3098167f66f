"""What the testbed claims, measured: each module is ``python -m benchmarks.NAME [--json] [--quick]``."""
