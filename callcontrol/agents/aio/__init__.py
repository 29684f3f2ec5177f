"""Services of voice agents."""
