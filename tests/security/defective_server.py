"""
The server with a planted defect: `python -m tests.security.defective_server ...` serves as the product does.

A request whose X-Request-Id begins with ``provoke`` fails in the midst with an error that repeats the body as
it was understood, as errors of this kind do that nobody foresaw.
"""

from __future__ import annotations

import sys
from typing import Any
from unittest import mock

from api.cli import main
from api.http.middleware import current_request
from api.schemas.base import validate_body


def _fails(*given: Any) -> Any:
    body = validate_body(*given)
    if current_request().request_id.startswith("provoke"):
        raise RuntimeError(f"a planted defect met {body!r}")
    return body


if __name__ == "__main__":
    with mock.patch("api.http.pipeline.validate_body", _fails):
        sys.exit(main(["serve"]))
