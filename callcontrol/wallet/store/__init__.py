"""SQL of wallets, their ledger and their reserves."""
