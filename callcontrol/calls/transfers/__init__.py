"""Transfers of the parties of a call."""
