"""Commands for those who work on the testbed itself."""
