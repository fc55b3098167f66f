"""The flow engine: the jobs' own programs on links whose rates are computed."""
