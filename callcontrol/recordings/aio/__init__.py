"""Services of recordings."""
