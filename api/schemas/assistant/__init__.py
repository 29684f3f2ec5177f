"""Requests and answers of the voice assistant."""
