"""Calls of browsers: the gateway between WebRTC and SIP, and the pages that can be called."""
