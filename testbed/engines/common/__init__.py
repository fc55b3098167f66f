"""What the engines share. Pure."""
