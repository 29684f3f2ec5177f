"""Forms and shapes of Twilio's interface."""
