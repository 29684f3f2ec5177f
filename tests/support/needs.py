"""
Marks of tests that need a program of somebody else.

`make test` installs all of them, so that nothing is skipped there. Elsewhere the reason says what to install.
"""

import pytest

from tests.interop.peers import HAVE_PJSUA
from tests.support.sipp_run import SIPP

__all__ = ["needs_pjsua", "needs_sipp"]

needs_sipp = pytest.mark.skipif(SIPP is None, reason="SIPp is not installed (Debian: sip-tester)")
needs_pjsua = pytest.mark.skipif(not HAVE_PJSUA, reason="pjsua2 (pjsua2-python) is not installed")
