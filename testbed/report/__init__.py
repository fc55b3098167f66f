"""What shows a run: tables, plots, the timeline and the HTML report."""
