"""The figures of Crux (Cao et al., SIGCOMM 2024)."""
