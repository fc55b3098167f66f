"""``testbed schema``: the JSON schema of the scenario file, for editors."""

from __future__ import annotations

import argparse
import json

from testbed.errors import EXIT_OK
from testbed.scenario import json_schema

NAME = "schema"
HELP = "print the JSON schema of the scenario file, for editors"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The schema needs no arguments."""


def run(arguments: argparse.Namespace) -> int:
    """Print the schema as one JSON document."""
    print(json.dumps(json_schema(), indent=2))
    return EXIT_OK
