"""INVITE sessions and their dialogs."""
