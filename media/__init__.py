"""Media: session descriptions, audio, RTP streams and agent streams. Knows nothing of SIP or calls."""
