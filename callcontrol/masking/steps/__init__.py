"""Steps of masked calls."""
