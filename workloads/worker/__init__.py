"""The worker process: emulates the GPUs of one host or several. Standard library only, so that it starts fast.

The one adapter of this package: it opens sockets, sleeps for compute and sends the real bytes.
"""
