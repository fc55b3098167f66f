"""How a run is shown: tables, plots and the HTML report."""
