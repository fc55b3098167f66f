"""Levels of Crux for many contending jobs: contention as arrays, cuts of orders, and levels that stay."""
