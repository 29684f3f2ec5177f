"""SQL of voice agents."""
