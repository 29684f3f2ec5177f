"""A later version of the program: this one with another migration, as a process of its own code."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from callcontrol.database import schema
from tests.support.server_process import ServerProcess

__all__ = ["NEXT_REVISION", "NextVersion", "make_next_version"]

NEXT_REVISION = "9001"
_ROOT = Path(__file__).parents[2]
_BUILT = ("media._engine", "sip._wire")
_MIGRATION = '''"""The change of the next version."""

from alembic import op

revision = "{revision}"
down_revision = "{before}"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for statement in {statements}:
        op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError
'''


def make_next_version(folder: Path, *statements: str, breaks_this: bool = False) -> Path:
    """
    Make the sources of a version whose migration executes some statements.

    Args:
        breaks_this: Whether it says that this version cannot run on its schema.
    """
    for name in ("api", "fixtures"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(_ROOT / name)
    for name in ("media", "sip"):
        (folder / name).mkdir()
        for part in (_ROOT / name).iterdir():
            if part.name != "__pycache__":
                (folder / name / part.name).symlink_to(part)
    for name in _BUILT:
        found = importlib.util.find_spec(name)
        assert found is not None and found.origin is not None, name
        built = Path(found.origin)
        (folder / name.partition(".")[0] / built.name).symlink_to(built)
    changed = folder / "callcontrol"
    shutil.copytree(_ROOT / "callcontrol", changed, ignore=shutil.ignore_patterns("__pycache__"))
    (changed / "database/migrations/versions/next.py").write_text(
        _MIGRATION.format(revision=NEXT_REVISION, before=schema.HEAD, statements=statements)
    )
    module = changed / "database/schema.py"
    module.write_text(_revised(module.read_text(), HEAD=NEXT_REVISION))
    if breaks_this:
        module.write_text(_revised(module.read_text(), OLDEST=NEXT_REVISION))
    return folder


def _revised(source: str, **revisions: str) -> str:
    for name, revision in revisions.items():
        source, found = re.subn(
            rf'^{name}: Final = "\d+"', f'{name}: Final = "{revision}"', source, flags=re.M
        )
        assert found == 1, name
    return source


class NextVersion(ServerProcess):
    """The server of another one's addresses and data, with the program in a folder."""

    def __init__(self, earlier: ServerProcess, program: Path) -> None:
        self.__dict__.update(earlier.__dict__)
        libraries = sysconfig.get_path("purelib")
        self._environment = {**self._environment, "PYTHONPATH": f"{program}:{libraries}"}
        self.process = None

    def _launch(self, log: int) -> subprocess.Popen[bytes]:
        # Without site-packages as such, whose editable installation leads to this version.
        return subprocess.Popen(
            [sys.executable, "-S", "-m", "api", "serve"],
            env=self._environment,
            cwd=self.data_dir,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
