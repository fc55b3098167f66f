"""Packet-level emulation of communication scheduling in GPU training clusters.

``testbed.run`` runs a scenario, ``testbed.plan`` says what a run would do, ``testbed.load`` reads a finished run back,
and ``testbed.compare`` puts runs side by side; see :mod:`testbed.api`.
"""

# Any Python must get through this file: __main__.py goes on in the right one. So nothing is imported before it is used.
MYPY = False
if MYPY:
    from testbed.api import compare, load, plan
    from testbed.api import run_scenario as run

__all__ = ["compare", "load", "plan", "run"]


def __getattr__(name):  # type: (str) -> object
    if name not in __all__:
        raise AttributeError("module 'testbed' has no attribute '" + name + "'")
    from importlib import import_module

    return getattr(import_module("testbed.api"), "run_scenario" if name == "run" else name)


def __dir__():  # type: () -> list[str]
    return sorted(list(globals()) + __all__)
