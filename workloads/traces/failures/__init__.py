"""Why jobs fail, how long that takes to show, and what can be done about it."""
