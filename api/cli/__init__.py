"""
The command `trunkline`.

Exit codes: 0 done, 1 the work failed or was refused, 2 the command or the settings are wrong. Results go to
standard output, as JSON where something was created; everything else goes to standard error.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

from api.cli.parser import build_parser
from api.process.config import ConfigError, load_settings
from api.process.failures import StartFailed
from callcontrol.errors import (
    DomainError,
    NodesTooOld,
    NodeTaken,
    SchemaTooNew,
    SecretsUnreadable,
    ValidationFailed,
)

__all__ = ["main"]

OK, FAILED, USAGE = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = build_parser()
    chosen = parser.parse_args(given)
    if not hasattr(chosen, "run"):
        chosen.parser.print_help(sys.stderr)
        return USAGE
    config = Path(chosen.config) if chosen.config else None
    try:
        return int(chosen.run(load_settings(os.environ, config), chosen))
    except ConfigError as error:
        _complain("the settings cannot be used:", *(f"  {problem}" for problem in error.problems))
        return USAGE
    except ValidationFailed as error:
        settings = [name for name, _ in getattr(chosen, "set", ())]
        _complain(*(f"{_option(item.field, settings)}: {item.message}" for item in error.errors))
        return FAILED
    except DomainError as error:
        _complain(error.message)
        return FAILED
    except (NodesTooOld, NodeTaken, SchemaTooNew, SecretsUnreadable, StartFailed) as error:
        _complain(str(error))
        return FAILED
    except OSError as error:
        _complain(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}")
        return FAILED
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return FAILED


def _option(field: str, settings: Collection[str]) -> str:
    """Option that a field came from; `settings` are the names given to `--set`."""
    for name in (field, f"gateway.{field}"):
        if name in settings:
            return f"--set {name}"
    return f"--{field.replace('_', '-')}"


def _complain(*lines: str) -> None:
    print(f"trunkline: {lines[0]}" if lines else "trunkline: failed", *lines[1:], sep="\n", file=sys.stderr)
