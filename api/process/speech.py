"""Speech synthesizer of the server."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import Final

from media.aio import EspeakSynthesizer

__all__ = ["make_speech"]

SPEECH_FOLDER: Final = "speech"
"""Folder of synthesized sentences, in the data directory."""

_PROGRAM: Final = "espeak-ng"
# A burst of greetings waits for a moment; more than this would wait too long.
_MAX_WAITING: Final = 256

_log = logging.getLogger("api.process.speech")


def make_speech(data_dir: Path) -> EspeakSynthesizer:
    """
    Make the speech synthesizer of calls; sentences that were synthesized before are read from disk.

    A server without espeak-ng starts all the same; its calls skip texts.
    """
    if shutil.which(_PROGRAM) is None:
        _log.warning(
            "%s is not installed: calls speak no texts until it is (apt install %s)", *2 * (_PROGRAM,)
        )
    return EspeakSynthesizer(data_dir / SPEECH_FOLDER, program=_PROGRAM, max_waiting=_MAX_WAITING)
