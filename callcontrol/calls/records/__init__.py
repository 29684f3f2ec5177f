"""Call records: what is kept and shown of a call."""
