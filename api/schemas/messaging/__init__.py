"""Bodies of the messaging service, in its spelling."""
