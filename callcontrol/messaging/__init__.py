"""Messaging: messages, templates, campaigns, contacts, and the interface to a messaging network."""
