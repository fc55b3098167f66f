"""The same numbers as compiled loops, by operations on whole arrays: for machines without the compiler."""
