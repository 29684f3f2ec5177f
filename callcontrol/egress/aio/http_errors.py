"""Error texts of requests to customers' servers, safe to log and to return."""

import aiohttp

__all__ = ["problem_of"]


def problem_of(error: Exception) -> str:
    """One-line error text; never the URL, whose query may hold a secret."""
    if isinstance(error, aiohttp.InvalidURL):
        return "the address cannot be asked"
    # For a response that is not HTTP, the library's text includes the address and much of the data.
    text = error.message if isinstance(error, aiohttp.ClientResponseError) else str(error)
    return text.strip().partition("\n")[0].strip() or type(error).__name__
