"""Packets of flows one at a time, through the queues, windows and token buckets of an emulation; compiled."""
