"""What speaks the texts of calls, as the server is set up."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import Final

from media.aio import EspeakSynthesizer

__all__ = ["make_speech"]

SPEECH_FOLDER: Final = "speech"
"""Where spoken sentences are kept, in the data directory."""

_PROGRAM: Final = "espeak-ng"
# A burst of calls that all greet at once waits for a moment; more than this would wait for too long.
_MAX_WAITING: Final = 256

_log = logging.getLogger("api.process.speech")


def make_speech(data_dir: Path) -> EspeakSynthesizer:
    """
    Make what speaks on calls; sentences that were spoken before are read from the disk.

    A server without the program starts all the same: calls pass over what they were to say.
    """
    if shutil.which(_PROGRAM) is None:
        _log.warning(
            "%s is not installed: calls speak no texts until it is (apt install %s)", *2 * (_PROGRAM,)
        )
    return EspeakSynthesizer(data_dir / SPEECH_FOLDER, program=_PROGRAM, max_waiting=_MAX_WAITING)
