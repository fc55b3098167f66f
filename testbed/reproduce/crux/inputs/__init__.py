"""What figures 19 to 22 of Crux leave open, and its fit to their bars without Crux."""
