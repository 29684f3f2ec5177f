"""The example of docs/media.md does what it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from media.aio import MediaEngine
from media.audio import PromptLibrary, Speaker, read_wav
from media.types import RemoteMedia
from tests.support.levels import level_dbfs
from tests.support.phone import engine_settings

ROOT = Path(__file__).parents[2]


async def test_the_example_announces_an_amount(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "media.md").read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(example, "docs/media.md", "exec"), names)
    far = MediaEngine(engine_settings(100))
    await far.start()
    callee = far.open_stream(lambda event: None)
    remote = RemoteMedia(*callee.local, codec="PCMU", payload_type=0)
    speaker = Speaker(PromptLibrary(ROOT / "fixtures" / "prompts"))
    path = tmp_path / "said.wav"
    # Nobody speaks at the far end.
    assert await names["announce"](remote, speaker, str(path)) == "unknown"
    await far.close()
    recorded = read_wav(path.read_bytes())
    assert (recorded.sample_rate, recorded.channels) == (8000, 2)
    right = b"".join(recorded.pcm[at + 2 : at + 4] for at in range(0, len(recorded.pcm), 4))
    assert level_dbfs(right) > -35.0
