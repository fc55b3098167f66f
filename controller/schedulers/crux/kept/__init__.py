"""What Crux keeps from event to event, so that an event costs what it changes."""
