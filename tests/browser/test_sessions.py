"""The end of a session in a real browser: by sign-out, by its key and by its time, in pages and in what they follow."""
