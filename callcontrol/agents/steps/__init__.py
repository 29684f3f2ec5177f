"""Steps of the built-in voice agent."""
