"""Mininet's nodes and links, with device creation and configuration left to batches.

Mininet runs a shell command per device and per setting; for the 96 cables of ``clos96`` that is
most of its start-up time. Here Mininet keeps the nodes, namespaces, shells and the interface
bookkeeping, and :mod:`topologies.mininet_adapter.network` makes all devices in one ``ip`` batch,
all bridges in one ``ovs-vsctl`` command and all queues in one ``tc`` batch per namespace.
"""

from __future__ import annotations

from typing import Any

from mininet.link import Intf, Link
from mininet.node import Host, OVSSwitch


class EmulatedHost(Host):  # type: ignore[misc]
    """A host whose addresses and routes are set in a batch after Mininet has made its namespace."""

    def config(self, **_: Any) -> dict[str, object]:
        """Leave the interfaces alone: they do not exist yet."""
        return {}


class EmulatedSwitch(OVSSwitch):  # type: ignore[misc]
    """A bridge of the run's own Open vSwitch; its interfaces live in the run's root namespace."""

    @classmethod
    def setup(cls) -> None:
        """Skip Mininet's search for a system-wide Open vSwitch: the run has its own."""

    @classmethod
    def batchStartup(cls, switches: Any, run: Any = None) -> Any:
        """Do nothing: all bridges are made in one transaction."""
        return switches

    @classmethod
    def batchShutdown(cls, switches: Any, run: Any = None) -> tuple[()]:
        """Leave the bridges to the end of the run's Open vSwitch."""
        return ()

    def start(self, controllers: object) -> None:
        """Do nothing: all bridges are made in one transaction."""

    def stop(self, deleteIntfs: bool = True) -> None:
        """End the shell; bridge and interfaces go with the run's namespaces."""
        self.terminate()


class EmulatedInterface(Intf):  # type: ignore[misc]
    """An interface in Mininet's bookkeeping."""

    def config(self, **_: Any) -> dict[str, object]:
        """Leave the device alone: it does not exist yet."""
        return {}


class EmulatedLink(Link):  # type: ignore[misc]
    """A cable of which Mininet knows both interfaces, and whose devices a batch makes."""

    @classmethod
    def makeIntfPair(cls, *_: object, **__: object) -> None:
        """Make nothing yet."""

    def delete(self) -> None:
        """Do nothing: the devices go with their namespaces."""
