"""Messaging: messages, templates, campaigns, contacts, and what a messaging network is asked."""
