"""Clients of a customer, written from the documents; none of them shares code with the product."""
