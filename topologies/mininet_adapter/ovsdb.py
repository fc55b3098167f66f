"""A client of Open vSwitch's database (RFC 7047): bridges are made in transactions of many.

One ``ovs-vsctl`` command for all bridges takes time with the square of their number: 180 did not end in a minute.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from topologies.mininet_adapter.system import LIMIT_S, CommandError

DATABASE: Final = "Open_vSwitch"
PORTS_AT_ONCE: Final = 1024
"""Ports of a transaction, or one bridge. The daemon looks at all ports at each transaction, so they are not too few."""
_LOOK_S: Final = 0.002
Operation = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Bridge:
    """A bridge to be made."""

    name: str
    datapath_id: str
    """16 hexadecimal digits."""
    datapath_type: str
    """Empty: the kernel's."""
    ports: Mapping[int, str]
    """OpenFlow port number -> interface, which is a device that is there."""
    controller: str | None
    """OpenFlow target such as ``tcp:127.0.0.1:6653``."""


def set_up(settings: Mapping[str, str]) -> list[Operation]:
    """Operations that fill an empty database: ``settings`` are the daemon's ``other_config``."""
    return [{"op": "insert", "table": DATABASE, "row": {"other_config": _map(settings)}}]


def no_op_qos() -> list[Operation]:
    """Operations that make the QoS that keeps Open vSwitch from wiping queues which it did not make.

    The first port that names it has to come in the same transaction: rows that nothing names are removed.
    """
    return [{"op": "insert", "table": "QoS", "row": {"type": "linux-noop"}, "uuid-name": "noop"}]


def bridge_operations(bridges: Iterable[Bridge], qos: Sequence[str]) -> list[Operation]:
    """Operations that add ``bridges``, whose ports name the row ``qos``."""
    operations: list[Operation] = []
    added = []
    for number, bridge in enumerate(bridges):
        names = [f"p{number}_{index}" for index in range(len(bridge.ports) + 1)]
        operations += _port(names[0], bridge.name, {"type": "internal"}, {})
        for name, (openflow, interface) in zip(names[1:], bridge.ports.items(), strict=True):
            operations += _port(name, interface, {"ofport_request": openflow}, {"qos": list(qos)})
        row = {
            "name": bridge.name,
            "datapath_type": bridge.datapath_type,
            "fail_mode": "secure",
            "protocols": "OpenFlow13",
            "other_config": _map({"datapath-id": bridge.datapath_id, "disable-in-band": "true"}),
            "ports": ["set", [["named-uuid", name] for name in names]],
        }
        if bridge.controller is not None:
            target = f"c{number}"
            operations.append(_insert("Controller", {"target": bridge.controller}, target))
            row["controller"] = ["named-uuid", target]
        operations.append(_insert("Bridge", row, f"b{number}"))
        added.append(["named-uuid", f"b{number}"])
    change = [["bridges", "insert", ["set", added]], ["next_cfg", "+=", 1]]
    return [*operations, {"op": "mutate", "table": DATABASE, "where": [], "mutations": change}]


def in_batches(bridges: Iterable[Bridge]) -> Iterator[list[Bridge]]:
    """``bridges`` in order, at most :data:`PORTS_AT_ONCE` ports or one bridge at once."""
    batch: list[Bridge] = []
    for bridge in bridges:
        if batch and sum(len(each.ports) for each in [*batch, bridge]) > PORTS_AT_ONCE:
            yield batch
            batch = []
        batch.append(bridge)
    if batch:
        yield batch


def _port(uuid: str, name: str, interface: Mapping[str, Any], port: Mapping[str, Any]) -> Iterator[Operation]:
    yield _insert("Interface", {"name": name, **interface}, f"{uuid}i")
    yield _insert("Port", {"name": name, "interfaces": ["named-uuid", f"{uuid}i"], **port}, uuid)


def _insert(table: str, row: Mapping[str, Any], uuid: str) -> Operation:
    return {"op": "insert", "table": table, "row": dict(row), "uuid-name": uuid}


def _map(values: Mapping[str, str]) -> list[Any]:
    return ["map", [[key, value] for key, value in values.items()]]


class Database:
    """A connection to the database server that listens at ``address``."""

    def __init__(self, address: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(LIMIT_S)
        self._decoder = json.JSONDecoder()
        self._text = ""
        self._asked = 0
        try:
            self._socket.connect(str(address))
        except OSError as error:
            self._socket.close()
            raise CommandError(f"ovsdb at {address.name}: {error}") from error

    def __enter__(self) -> Database:
        """Return the connection, which is closed at the end of the context."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self._socket.close()

    def make_bridges(self, bridges: Iterable[Bridge]) -> None:
        """Add ``bridges``, and wait until the daemon has carried that out; ``CommandError`` says what is wrong."""
        qos: Sequence[str] = ("named-uuid", "noop")
        for batch in in_batches(bridges):
            first = qos[0] == "named-uuid"
            answers = self.transact([*(no_op_qos() if first else ()), *bridge_operations(batch, qos)])
            qos = answers[0]["uuid"] if first else qos
            self._wait_for_the_daemon()

    def transact(self, operations: Sequence[Operation]) -> list[Any]:
        """Carry out ``operations`` together and return an answer for each; ``CommandError`` if one is refused."""
        self._asked += 1
        request = {"method": "transact", "params": [DATABASE, *operations], "id": self._asked}
        try:
            self._socket.sendall(json.dumps(request).encode())
            answer = self._answer()
        except OSError as error:
            raise CommandError(f"ovsdb transaction of {len(operations)} operations: {error}") from error
        results = answer.get("result") or []
        for wrong in (each for each in [answer, *results] if isinstance(each, dict) and each.get("error")):
            raise CommandError(
                f"ovsdb refused a transaction: {wrong['error']} {wrong.get('details', '')}", str(request)
            )
        return list(results)

    def _answer(self) -> dict[str, Any]:
        while True:
            message = self._message()
            if message.get("method") == "echo":  # the server asks whether this end is still there
                echo = {"result": message["params"], "error": None, "id": message["id"]}
                self._socket.sendall(json.dumps(echo).encode())
            elif message.get("id") == self._asked:
                return message

    def _message(self) -> dict[str, Any]:
        while True:
            try:
                message, end = self._decoder.raw_decode(self._text)
            except ValueError:
                read = self._socket.recv(1 << 16)
                if not read:
                    raise ConnectionResetError("the database server has ended") from None
                self._text += read.decode()
            else:
                self._text = self._text[end:].lstrip()
                return dict(message)

    def _wait_for_the_daemon(self) -> None:
        deadline = time.monotonic() + LIMIT_S
        columns = ["cur_cfg", "next_cfg"]
        question: Operation = {"op": "select", "table": DATABASE, "where": [], "columns": columns}
        while time.monotonic() < deadline:
            row = self.transact([question])[0]["rows"][0]
            if row["cur_cfg"] >= row["next_cfg"]:
                return
            time.sleep(_LOOK_S)
        raise CommandError(f"ovs-vswitchd did not make its bridges within {LIMIT_S} s")
