"""Loading the directory, and changing its rows."""
