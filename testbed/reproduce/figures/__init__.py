"""The testbed figures of Crux: rows of scenarios, emulated over several hash seeds, beside the paper's bars."""
