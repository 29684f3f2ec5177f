"""Number masking: /v1 calls, sessions, logs and webhook."""
