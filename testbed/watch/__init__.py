"""A run while it goes on: samples, the page on the loopback that shows them, and the view in a terminal."""
