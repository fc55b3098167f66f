"""Congestion control: how fast a flow may send, and what it learns from marks, notices and telemetry; compiled."""
