"""Requests and answers of number masking."""
