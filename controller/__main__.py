"""``python -m controller``: the stand-alone controller, for any network of OpenFlow 1.3 switches."""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NoReturn

from controller.decision import Scheduler
from controller.schedulers import registry
from controller.service.json_codec import fabric_from_json
from controller.service.token_file import TokenFile
from topologies.fabric import Fabric
from topologies.limits import one_line, read_text

EXIT_FAILED, EXIT_BAD_INPUT, EXIT_CANNOT = 1, 2, 3
_LAST_PORT: Final = 65535
_FABRIC_BYTES: Final = 256 * 2**20
"""Of a fabric in JSON; one of thousands of hosts has some 10 MB."""


class _Parser(argparse.ArgumentParser):
    """A wrong option is reported in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(EXIT_BAD_INPUT, one_line(f"controller: {message} (see {self.prog} --help)") + "\n")


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and int(text) <= _LAST_PORT):
        raise argparse.ArgumentTypeError(f"'{text}' is no TCP port, expected 0 to {_LAST_PORT}")
    return int(text)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = _Parser(prog="python -m controller", description="Carries a scheduler's decisions out.")
    made.add_argument("--scheduler", required=True, metavar="NAME", help=f"one of: {', '.join(registry.names())}")
    made.add_argument("--option", action="append", default=[], metavar="KEY=VALUE", help="an option of the scheduler")
    made.add_argument("--openflow-port", type=_port, default=6653, metavar="PORT", help="default 6653")
    made.add_argument("--rest-port", type=_port, default=8080, metavar="PORT", help="default 8080; 0 is any free one")
    made.add_argument("--rest-socket", metavar="PATH", help="serve REST on this Unix socket too")
    changes = "make a token for changes over TCP and write it here, mode 600; without it TCP serves GET only"
    made.add_argument("--token-file", type=Path, metavar="PATH", help=changes)
    made.add_argument("--seed", type=int, default=1, help="default 1")
    made.add_argument("--levels", type=int, default=8, choices=range(1, 9), metavar="K", help="1 to 8, default 8")
    spread = "install groups of all paths of a flow in place of the decided one, for switches that spread packets"
    made.add_argument("--spread", action="store_true", help=spread)
    made.add_argument("--fabric", metavar="FILE", help="a fabric as JSON, instead of PUT /fabric")
    return made


def parse_options(texts: Sequence[str]) -> dict[str, object]:
    """Return the ``KEY=VALUE`` pairs of ``texts``, JSON values decoded. ``ValueError`` for a text that is no pair."""
    options: dict[str, object] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise ValueError(f"'{text}' is not KEY=VALUE")
        try:
            options[key] = json.loads(value)
        except (ValueError, RecursionError):
            options[key] = value
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT and return the exit status."""
    given = parser().parse_args(arguments)
    try:
        scheduler = registry.create(given.scheduler, parse_options(given.option), given.seed)
    except ValueError as error:
        print(f"controller: {one_line(str(error))}", file=sys.stderr)
        return EXIT_BAD_INPUT
    try:
        fabric = None if given.fabric is None else fabric_from_json(json.loads(_text(Path(given.fabric))))
    except (ValueError, OSError, RecursionError) as error:
        why = (error.strerror if isinstance(error, OSError) else "") or str(error)
        print(one_line(f"controller: {given.fabric}: {why}, expected a fabric as JSON"), file=sys.stderr)
        return EXIT_BAD_INPUT
    return _serve(given, scheduler, fabric)


def _text(path: Path) -> str:
    return read_text(path, _FABRIC_BYTES)


def _serve(given: argparse.Namespace, scheduler: Scheduler, fabric: Fabric | None) -> int:
    try:
        from controller.dataplane.ryu_compat import hub
    except ImportError as error:
        print(f"controller: {error}", file=sys.stderr)
        return EXIT_CANNOT
    hub.patch()
    from controller.service.server import ControllerServer
    from controller.service.service import RequestError

    logging.basicConfig(level=logging.WARNING, format="%(name)s: %(message)s")
    token = None if given.token_file is None else TokenFile(given.token_file)
    stopped: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda caught, frame: stopped.append(caught))
    try:
        running = ControllerServer(scheduler, given.levels, given.seed, given.openflow_port, spread=given.spread)
        if fabric is not None:
            running.service.put_fabric(fabric)
        rest_port = running.serve_rest(given.rest_port, given.rest_socket, None if token is None else token.write)
    except (OSError, RequestError) as error:
        print(f"controller: {error}", file=sys.stderr)
        return EXIT_FAILED if isinstance(error, OSError) else EXIT_BAD_INPUT
    print(f"controller ready: OpenFlow 127.0.0.1:{given.openflow_port}, REST http://127.0.0.1:{rest_port}", flush=True)
    while not stopped:
        hub.sleep(0.1)
    if token is not None:
        token.remove()
    return 0


def _leave(status: int) -> None:
    """Exit at once: the hub's threads never end and must not keep the process alive."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    _leave(main())
