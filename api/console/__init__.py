"""Console: pages of the server for people, rendered here and made live by small scripts."""
