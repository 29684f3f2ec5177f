"""The direction of imports: api -> callcontrol -> sip, media; and I/O only at the rim."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("sip", "media", "callcontrol", "api", "fixtures")

# What each package may import of the others.
MAY_IMPORT = {
    "sip": {"sip"},
    "media": {"media"},
    "callcontrol": {"callcontrol", "sip", "media"},
    "fixtures": {
        *("fixtures", "sip", "media"),
        *("callcontrol.calls.ports", "callcontrol.numbers.inventory", "callcontrol.aio.tokens"),
        *("callcontrol.messaging.approval", "callcontrol.messaging.network"),
    },
    "api": {"api", "callcontrol", "sip", "media", "fixtures"},
}

# Only the process entry joins the stand-ins to the product.
WIRES_FIXTURES = {"api/process/server.py", "api/cli/demo.py"}

SANS_IO_PACKAGES = ("sip", "media", "callcontrol")
IO_MODULES = {
    "asyncio",
    "multiprocessing",
    "random",
    "secrets",
    "select",
    "selectors",
    "socket",
    "ssl",
    "subprocess",
    "threading",
    "time",
    "uvloop",
}
CLOCK_CALLS = {"now", "utcnow", "today", "uuid4", "uuid1", "urandom"}


def sources(package: str) -> list[Path]:
    """All Python sources of a package, as paths below the root."""
    return [path.relative_to(ROOT) for path in sorted((ROOT / package).rglob("*.py"))]


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, dotted module) for each import statement of a file."""
    tree = ast.parse((ROOT / path).read_text(), filename=str(path))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 or path.name == "__init__.py" or node.level == 1, (
                f"{path}: deep relative import"
            )
            base = _absolute(path, node)
            yield node.lineno, base
            for alias in node.names:
                yield node.lineno, f"{base}.{alias.name}"


def _absolute(path: Path, node: ast.ImportFrom) -> str:
    if node.level == 0:
        return node.module or ""
    parts = path.parent.parts[: len(path.parent.parts) - node.level + 1]
    return ".".join((*parts, node.module)) if node.module else ".".join(parts)


def allowed(package: str, module: str) -> bool:
    return any(module == prefix or module.startswith(prefix + ".") for prefix in MAY_IMPORT[package])


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_imports_only_what_lies_below_it(package: str) -> None:
    wrong = []
    for path in sources(package):
        for line, module in imports(path):
            top = module.split(".")[0]
            if top not in PACKAGES or allowed(package, module):
                continue
            # `from callcontrol import calls` yields the bare package first; its second form decides.
            if package == "fixtures" and module == "callcontrol":
                continue
            wrong.append(f"{path}:{line} imports {module}")
    assert wrong == []


def test_only_the_process_entry_imports_fixtures() -> None:
    wrong = [
        f"{path}:{line} imports {module}"
        for path in sources("api")
        if str(path) not in WIRES_FIXTURES
        for line, module in imports(path)
        if module.split(".")[0] == "fixtures"
    ]
    assert wrong == []


@pytest.mark.parametrize("package", SANS_IO_PACKAGES)
def test_only_the_aio_folders_touch_clocks_sockets_and_tasks(package: str) -> None:
    wrong = [
        f"{path}:{line} imports {module}"
        for path in sources(package)
        if "aio" not in path.with_suffix("").parts
        for line, module in imports(path)
        if module.split(".")[0] in IO_MODULES
    ]
    assert wrong == []


@pytest.mark.parametrize("package", SANS_IO_PACKAGES)
def test_only_the_aio_folders_read_the_clock_or_make_random_ids(package: str) -> None:
    wrong = []
    for path in sources(package):
        if "aio" in path.with_suffix("").parts or "migrations" in path.parts:
            continue
        for node in ast.walk(ast.parse((ROOT / path).read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in CLOCK_CALLS
            ):
                wrong.append(f"{path}:{node.lineno} calls {node.func.attr}()")
    assert wrong == []


def test_the_core_of_sip_and_media_does_not_know_its_own_shell() -> None:
    wrong = [
        f"{path}:{line} imports {module}"
        for package in SANS_IO_PACKAGES
        for path in sources(package)
        if "aio" not in path.with_suffix("").parts
        for line, module in imports(path)
        if module.split(".")[0] == package and "aio" in module.split(".")
    ]
    assert wrong == []


def test_no_source_has_grown_past_six_hundred_lines() -> None:
    large = [
        f"{path}: {count} lines"
        for package in (*PACKAGES, "tests", "benchmarks", "fuzz")
        for path in sources(package)
        if (count := len((ROOT / path).read_text().splitlines())) > 600
    ]
    assert large == []
