"""Changes to active calls over the API."""
