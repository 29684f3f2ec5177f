"""Request and response models of number masking."""
