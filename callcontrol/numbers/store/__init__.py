"""SQL of numbers."""
