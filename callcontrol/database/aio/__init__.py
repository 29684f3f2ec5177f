"""Engines, the writer, pages of lists."""
