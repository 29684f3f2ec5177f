"""WebRTC of a browser's leg: ICE, DTLS and session descriptions. No audio is touched here."""
