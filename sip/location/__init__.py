"""Server location (RFC 3263) and failover."""
