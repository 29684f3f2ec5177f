"""Services of the voice assistant."""
