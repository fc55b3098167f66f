"""What the testbed claims, measured: each module is ``python -m benchmarks.NAME [--json] [--quick]``."""

import os

# Benchmarks are root's: under sudo, too, their runs write to folders that only root can enter.
os.environ.pop("SUDO_UID", None)
