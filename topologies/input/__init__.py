"""What is read from people: how it may be spelled."""
