"""
Marks of tests that need a program of somebody else.

`make test` installs what can be had, and then nothing is skipped. Otherwise the reason says what to install.
"""

import pytest

from tests.interop.peers import HAVE_PJSUA
from tests.support.sipp_run import SIPP

__all__ = ["needs_pjsua", "needs_sipp"]

# Skipped, not failed: who runs single tests by pytest, as without root, need not install everything.
needs_sipp = pytest.mark.skipif(SIPP is None, reason="SIPp is not installed (Debian: sip-tester)")
# Wheels exist for Linux on x86-64 and Python before 3.13 alone; elsewhere `make test` installs none.
needs_pjsua = pytest.mark.skipif(not HAVE_PJSUA, reason="pjsua2 (pjsua2-python) is not installed")
