"""Services of accounts and API keys."""
