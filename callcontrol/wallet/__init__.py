"""Wallet: money, rating, ledger."""
