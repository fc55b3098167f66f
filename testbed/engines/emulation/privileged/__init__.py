"""What stays root beside a command that has given root up."""
