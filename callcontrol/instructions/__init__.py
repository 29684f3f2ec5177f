"""Call control by the customer's webhook."""
