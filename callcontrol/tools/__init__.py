"""Tools that agents and other programs of an account may use, and their descriptions."""
