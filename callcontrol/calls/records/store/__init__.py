"""SQL of call records."""
