"""SQL of number masking."""
