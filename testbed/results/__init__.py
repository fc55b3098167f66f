"""What a run leaves: its record, and its directory."""
