"""Routing: permitted targets of a call, and the gateways to them."""
