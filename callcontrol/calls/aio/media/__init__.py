"""Media of calls."""
