"""Services of numbers."""
