"""Faults, and the guarantees that hold under them: each test proves the sentence of its docstring."""
