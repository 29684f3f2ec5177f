"""Building the services, and what runs beside them."""
