"""The controller as a service: a REST interface to a scheduler and its switches."""
