"""The emulation engine: real packets between namespaces."""
