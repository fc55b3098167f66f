"""Packets of RDMA connections at line rate: links with delays, marks, pauses and congestion control; compiled."""
