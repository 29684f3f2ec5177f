"""Webhooks: subscriptions, outbox, delivery."""
