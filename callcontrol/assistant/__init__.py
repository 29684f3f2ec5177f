"""Voice assistant: views and keys over agents and calls."""
