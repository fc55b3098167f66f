"""An experiment as a value: what runs, at which scale."""
