"""What is asked of Open vSwitch's database, and how its answers are read."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from topologies.mininet_adapter.ovsdb import PORTS_AT_ONCE, Bridge, Database, bridge_operations, in_batches
from topologies.mininet_adapter.system import CommandError

Answer = Callable[[dict[str, Any]], list[dict[str, Any]]]


def bridge(name: str, ports: int) -> Bridge:
    return Bridge(name, "0" * 16, "netdev", {n + 1: f"{name}-eth{n + 1}" for n in range(ports)}, "tcp:127.0.0.1:1")


def test_batches_keep_the_order_and_are_small() -> None:
    bridges = [bridge(f"s{n}", 48) for n in range(40)]
    batches = list(in_batches(bridges))
    assert [each for batch in batches for each in batch] == bridges
    assert max(sum(len(each.ports) for each in batch) for batch in batches) <= PORTS_AT_ONCE


def test_a_bridge_larger_than_a_batch_is_one() -> None:
    assert [len(batch) for batch in in_batches([bridge("big", PORTS_AT_ONCE + 1), bridge("s", 1)])] == [1, 1]


def test_every_port_has_its_number_and_the_qos_that_keeps_queues() -> None:
    operations = bridge_operations([bridge("s0", 2)], ("uuid", "x"))
    interfaces = [each["row"] for each in operations if each.get("table") == "Interface"]
    ports = [each["row"] for each in operations if each.get("table") == "Port"]
    assert [row.get("ofport_request") for row in interfaces] == [None, 1, 2]
    assert [row.get("qos") for row in ports] == [None, ["uuid", "x"], ["uuid", "x"]]


def served(folder: Path, answer: Answer) -> Path:
    """A database server that answers each request with the messages of ``answer``, in pieces."""
    path = folder / "db.sock"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()

    def serve() -> None:
        connection, _ = listener.accept()
        with connection, listener:
            while read := connection.recv(1 << 16):
                for message in answer(json.loads(read)):
                    text = json.dumps(message).encode()
                    connection.sendall(text[:7])
                    connection.sendall(text[7:])

    threading.Thread(target=serve, daemon=True).start()
    return path


def test_an_answer_is_read_in_pieces(tmp_path: Path) -> None:
    path = served(tmp_path, lambda request: [{"id": request["id"], "result": [{"rows": ["é"]}], "error": None}])
    with Database(path) as database:
        assert [database.transact([]), database.transact([])] == [[{"rows": ["é"]}]] * 2


def test_a_refusal_is_one_short_line_that_has_the_servers_words(tmp_path: Path) -> None:
    refusal = {"error": "constraint violation", "details": "no such column " + "x" * 10_000}
    path = served(tmp_path, lambda request: [{"id": request["id"], "result": [{}, refusal], "error": None}])
    with Database(path) as database, pytest.raises(CommandError) as refused:
        database.transact([{"op": "insert", "table": "Bridge", "row": {}}])
    assert str(refused.value).startswith("ovsdb refused a transaction: constraint violation no such column")
    assert len(str(refused.value)) <= 500 and '"Bridge"' in refused.value.whole.replace("'", '"')


def test_a_server_that_ends_is_one_line(tmp_path: Path) -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "db.sock"))
    listener.listen()
    with Database(tmp_path / "db.sock") as database, pytest.raises(CommandError, match="ovsdb transaction"):
        listener.accept()[0].close()
        listener.close()
        database.transact([])
