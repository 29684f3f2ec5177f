"""Shell of the call machine."""
