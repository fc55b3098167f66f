"""The one adapter of this package: a fabric emulated with Mininet, Open vSwitch and tc."""
