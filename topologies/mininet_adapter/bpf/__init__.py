"""Programs that run in the kernel: what waits at every link, marks, and congestion controls; and what loads them."""
