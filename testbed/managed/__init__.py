"""Jobs that a cluster manager starts, stops, resizes and moves while a run goes on."""
