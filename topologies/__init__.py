"""Fabrics as values: generators, addressing, queues. Pure: no kernel, no sockets."""
