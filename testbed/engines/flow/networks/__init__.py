"""What carries messages where nothing is sent: fluids, packets of an emulation, packets at line rate."""
