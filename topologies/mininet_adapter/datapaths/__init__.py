"""What forwards the packets of an emulated fabric: one module for each way, with one interface."""
