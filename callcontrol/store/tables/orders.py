"""Purchases and renewals of phone numbers."""
