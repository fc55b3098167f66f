"""What an iteration sends: collectives, gradients, experts, and how they expand into flows."""
