"""Servers that share a PostgreSQL database: leases, fencing, and adoption of the calls of a dead one."""
