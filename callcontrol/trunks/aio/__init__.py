"""Services of trunks."""
