"""Rate limits by source, and overload control."""
