"""Egress: rules for every connection to a customer's host."""
