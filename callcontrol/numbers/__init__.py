"""Leased numbers: binding, purchase, renewal."""
