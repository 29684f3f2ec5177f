"""Outbox and delivery of webhooks."""
