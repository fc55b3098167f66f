"""``testbed schema``: the JSON schema of the scenario file, for editors."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from testbed.errors import EXIT_OK, RunFailedError

NAME = "schema"
HELP = "print the JSON schema of the scenario file, for editors"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare where to write it."""
    parser.add_argument("--out", type=Path, metavar="FILE", help="write it to FILE, such as scenario.schema.json")


def run(arguments: argparse.Namespace) -> int:
    """Print the schema as one JSON document, or write it."""
    from testbed.scenario import json_schema

    text = json.dumps(json_schema(), indent=2)
    if arguments.out is None:
        print(text)
        return EXIT_OK
    try:
        arguments.out.write_text(f"{text}\n", "utf-8")
    except OSError as error:
        raise RunFailedError(f"{arguments.out}: cannot be written: {error.strerror or error}") from error
    print(arguments.out)
    return EXIT_OK
