"""Benchmarks of the server: one module per claim; see README.md."""
