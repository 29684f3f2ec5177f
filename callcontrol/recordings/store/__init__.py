"""SQL of recordings."""
