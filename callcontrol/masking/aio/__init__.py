"""Services of number masking."""
