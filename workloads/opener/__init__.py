"""Sockets in other network namespaces for processes that may not enter them. Standard library only, as the worker.

An adapter: entering a namespace takes a capability that is nearly all of root, so one small process keeps it, and does
nothing but open sockets; the workers, which read what others send, have none.
"""
