"""SIP messages: header fields, URIs, reading and writing."""
