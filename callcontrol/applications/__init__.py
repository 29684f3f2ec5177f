"""Applications: named bindings."""
