"""Keys of this installation, and encryption with them."""
