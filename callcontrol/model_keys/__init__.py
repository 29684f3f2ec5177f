"""Keys of vendors of speech models that accounts have stored."""
