"""The namespaces that hold a run: made, entered, watched from outside and left."""
