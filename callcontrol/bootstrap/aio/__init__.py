"""Construction of the services, and their background tasks."""
