"""What watches an emulation while it runs: counters, queues, packets, processes."""
