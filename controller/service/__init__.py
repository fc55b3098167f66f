"""The controller as a service: REST in front of a scheduler and its switches."""
