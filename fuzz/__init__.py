"""Fuzzing of everything that reads what peers send; see run.py."""
