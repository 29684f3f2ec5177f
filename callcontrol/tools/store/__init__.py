"""SQL of tools."""
