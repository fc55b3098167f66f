"""The flow engine against the emulation."""
