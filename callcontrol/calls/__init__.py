"""Call machine: events in, effects out."""
