"""Trunks: carriers, gateways, registrations, trunk policy."""
