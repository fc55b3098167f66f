"""What a scenario says of the network: its fabric, and how its packets are simulated."""
