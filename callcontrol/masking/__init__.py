"""Number masking."""
