"""What went wrong with a request to somebody's server, in words that may be logged and passed on."""

import aiohttp

__all__ = ["problem_of"]


def problem_of(error: Exception) -> str:
    """One line that says what went wrong; never the address, whose query may hold a secret."""
    if isinstance(error, aiohttp.InvalidURL):
        return "the address cannot be asked"
    # Of an answer that is no HTTP, the library would tell the address that gave it, and much of what it was.
    text = error.message if isinstance(error, aiohttp.ClientResponseError) else str(error)
    return text.strip().partition("\n")[0].strip() or type(error).__name__
