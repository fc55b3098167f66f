"""Ryu, or its fork os-ken where Ryu cannot be imported: only this module knows which.

``TESTBED_OPENFLOW=os-ken`` (or ``ryu``) chooses. Both have the same interface under another name,
so what is imported here has no static type.
"""

from __future__ import annotations

import importlib
import os
import warnings
from types import ModuleType
from typing import Any

ENVIRONMENT = "TESTBED_OPENFLOW"
_PACKAGES = {"ryu": "ryu", "os-ken": "os_ken"}


class NoOpenFlowLibraryError(ImportError):
    """Neither Ryu nor os-ken can be imported; the message is one line for the user."""


def _prepare_eventlet() -> None:
    """Current eventlet has dropped a name that Ryu 4.34 imports and never uses on Python 3."""
    wsgi = importlib.import_module("eventlet.wsgi")
    if not hasattr(wsgi, "ALREADY_HANDLED"):
        vars(wsgi)["ALREADY_HANDLED"] = None


def _load(name: str) -> ModuleType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # eventlet announces its own retirement at every import
        if name == "ryu":
            _prepare_eventlet()
        return importlib.import_module(f"{_PACKAGES[name]}.base.app_manager")


def _choose() -> tuple[str, ModuleType]:
    wanted = os.environ.get(ENVIRONMENT)
    if wanted is not None and wanted not in _PACKAGES:
        raise NoOpenFlowLibraryError(f"{ENVIRONMENT} must be ryu or os-ken, not '{wanted}'")
    reasons = []
    for name in [wanted] if wanted else list(_PACKAGES):
        try:
            return name, _load(name)
        except Exception as error:  # Ryu fails on new Pythons with more than ImportError
            reasons.append(f"{name}: {error}")
    raise NoOpenFlowLibraryError(f"no OpenFlow library can be imported ({'; '.join(reasons)})")


LIBRARY, _app_manager = _choose()


def _module(path: str) -> Any:
    return importlib.import_module(f"{_PACKAGES[LIBRARY]}.{path}")


hub: Any = _module("lib.hub")
cfg: Any = _module("cfg")
ofp_event: Any = _module("controller.ofp_event")
ofproto_parser: Any = _module("ofproto.ofproto_parser")
ofproto_protocol: Any = _module("ofproto.ofproto_protocol")
ofproto_v1_3: Any = _module("ofproto.ofproto_v1_3")
handler: Any = _module("controller.handler")
AppManager: Any = _app_manager.AppManager
App: Any = getattr(_app_manager, "RyuApp", None) or _app_manager.OSKenApp

OFP_HANDLER = f"{_PACKAGES[LIBRARY]}.controller.ofp_handler"
"""The application that speaks the OpenFlow handshake, by module name."""
