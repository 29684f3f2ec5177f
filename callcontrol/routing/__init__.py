"""Routing: where a call may go, and by which gateways."""
