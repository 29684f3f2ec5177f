"""Telephones in web pages: tokens, and calls of browsers."""
