"""SQL of messaging."""
