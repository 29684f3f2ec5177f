"""Voice OTP."""
