"""Independence of the clients: they share no code with the product that they judge."""

from __future__ import annotations

from tests.test_layering import PACKAGES, imports, sources


def test_the_clients_import_nothing_of_the_product() -> None:
    product = {*PACKAGES, "mcp"}
    wrong = [
        f"{path}:{line} imports {module}"
        for path in sources("tests/acceptance")
        for line, module in imports(path)
        if module.split(".")[0] in product
    ]
    assert wrong == []
