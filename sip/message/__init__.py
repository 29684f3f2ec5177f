"""SIP messages: header fields, URIs, parsing and serialising."""
