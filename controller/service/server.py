"""A controller that runs in this process: OpenFlow server, application and REST server together."""

from __future__ import annotations

import socket
from collections.abc import Callable

from controller.dataplane.ryu_app import ControllerApp, SwitchNetwork
from controller.dataplane.ryu_compat import OFP_HANDLER, AppManager, cfg, hub
from controller.decision import Scheduler
from controller.service.rest import RestServer, listen_tcp, listen_unix
from controller.service.service import Service


class ControllerServer:
    """Starts everything; the hub's threads then serve until the process ends.

    Raises ``OSError`` with one line where a port is taken.
    """

    def __init__(
        self, scheduler: Scheduler, levels: int, seed: int, openflow_port: int, *, spread: bool = False
    ) -> None:
        _require_free(openflow_port)
        network = SwitchNetwork()
        self._lock = hub.Semaphore(1)
        self.service = Service(network, scheduler, levels, seed, spread=spread)
        _start_openflow(openflow_port, network, self.service, self._lock)

    def serve_rest(self, port: int, path: str | None = None, token: Callable[[], str] | None = None) -> int:
        """Serve REST on loopback ``port`` (0: any) and, if given, on the Unix socket ``path``; return the port.

        ``token`` makes what changes over TCP must show, once both can be served; without it TCP serves no changes.
        """
        listeners = [listen_tcp(port), *([] if path is None else [listen_unix(path)])]
        rest = RestServer(self.service, self._lock, None if token is None else token())
        for listener in listeners:
            rest.serve(listener)
        return int(listeners[0].getsockname()[1])


def _require_free(port: int) -> None:
    """Raise if ``port`` is taken: the library would only log it, and accept no connection."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise OSError(f"OpenFlow port {port} cannot be used: {reason}") from error


def _start_openflow(port: int, network: SwitchNetwork, service: Service, lock: object) -> None:
    manager = AppManager.get_instance()
    manager.load_apps([OFP_HANDLER])
    configuration = cfg.CONF
    configuration(args=[], project="controller", default_config_files=[])
    configuration.set_override("ofp_listen_host", "127.0.0.1")
    configuration.set_override("ofp_tcp_listen_port", port)
    manager.create_contexts()
    manager.instantiate(ControllerApp, network=network, rules_on=service.rules_on, lock=lock)
    manager.instantiate_apps()
    hub.sleep(0.05)  # the server listens as soon as its thread has run
