"""The one adapter of this room: a fabric carried out by Mininet, Open vSwitch and tc."""
