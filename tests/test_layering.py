"""The direction of imports: api -> callcontrol -> sip, media; and I/O only at the rim."""

from __future__ import annotations

import ast
from collections import Counter
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
        *("callcontrol.numbers.inventory", "callcontrol.aio.tasks", "callcontrol.aio.tokens"),
        *("callcontrol.messaging.approval", "callcontrol.messaging.models", "callcontrol.messaging.network"),
        "callcontrol.calls.sandbox",
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
        for package in (*PACKAGES, "tests", "benchmarks", "fuzz", "clients")
        for path in sources(package)
        if (count := len((ROOT / path).read_text().splitlines())) > 600
    ]
    assert large == []


def test_annotations_of_models_are_no_text() -> None:
    """A start takes a tenth longer when pydantic has to evaluate the annotations of all models."""
    wrong = [
        f"{path}:{line} imports {module}"
        for path in sources("api/schemas")
        for line, module in imports(path)
        if module.split(".")[0] == "__future__"
    ]
    assert wrong == []


SMALL_LINES = 60
# Modules of fewer lines with one importer, that have a reason to stand alone.
SMALL = {
    "api/__main__.py": "`python -m api`",
    "api/cli/health.py": "a command, imported by its name",
    "api/cli/serve.py": "a command, imported by its name",
    "api/openapi/links.py": "the document would have two concerns",
    "api/schemas/sandbox.py": "models of requests and responses, where all are",
    "api/schemas/jambonz_api/applications.py": "models of requests and responses, where all are",
    "api/process/allocator.py": "the C library; the run of a server would have another concern",
    "api/process/node_lock.py": "the only lock file; the server would have another concern",
    "callcontrol/agents/store/transcripts.py": "SQL; its user is above the floor of SQL",
    "callcontrol/assistant/product.py": "the policy of a product, in the same place for each",
    "callcontrol/calls/records/store/orphaned_dialogs.py": "SQL; its user is not",
    "callcontrol/calls/steps/agent_reconnect.py": "a state table; its user is near the limit of lines",
    "callcontrol/recordings/links.py": "pure; its user is not",
    "callcontrol/masking/product.py": "the policy of a product, in the same place for each",
}


def test_a_small_module_has_several_importers_or_a_reason() -> None:
    """A package's `__init__` that exports a module stands for all importers of the package."""
    paths = [path for package in PACKAGES for path in sources(package)]
    importers: Counter[str] = Counter()
    for path in paths:
        found = {name.replace(".", "/") for _, name in imports(path)}
        importers.update(name for name in found for _ in range(2 if path.name == "__init__.py" else 1))
    small = {
        str(path)
        for path in paths
        if path.name != "__init__.py"
        # The console finds its pages by their folder.
        and not {"migrations", "tables", "pages"} & set(path.parts)
        and len((ROOT / path).read_text().splitlines()) < SMALL_LINES
        and importers[str(path.with_suffix(""))] < 2
    }
    assert small == set(SMALL)
