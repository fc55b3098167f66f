"""Workloads from the files of other tools: SimAI, Chakra and Kineto, as iterations of a job."""
