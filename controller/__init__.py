"""Schedulers, the rules that carry their decisions out, and the service around both."""
