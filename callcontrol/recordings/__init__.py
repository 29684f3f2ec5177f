"""Recordings and voicemail after the call."""
