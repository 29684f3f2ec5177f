"""One-time passwords that are spoken in calls."""
