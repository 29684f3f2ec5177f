"""Request and response models of the voice assistant."""
