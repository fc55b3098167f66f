"""Figure 16 of Crux (SIGCOMM 2024): each mechanism against the optimum of small generated cases."""
