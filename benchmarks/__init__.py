"""What the server costs, measured: one module per claim; see README.md."""
