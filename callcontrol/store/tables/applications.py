"""Applications: what to do with calls, named once and used by many numbers."""
