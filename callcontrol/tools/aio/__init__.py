"""Registration and execution of tools."""
