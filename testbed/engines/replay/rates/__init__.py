"""Who shares links with whom, and the long-run rates of those who do."""
