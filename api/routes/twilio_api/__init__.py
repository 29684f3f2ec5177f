"""Endpoints for Twilio's own clients, in its paths, forms and shapes."""
