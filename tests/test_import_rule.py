"""Who may import whom: layers meet only as arrays, and only the simulation knows all of them.

The rule is read off the sources, so it also holds for imports inside functions and for type checkers only.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import tropel

SOURCES = Path(tropel.__file__).parent
LAYERS = ("planning", "environment", "local")

#: What everything else stands on: errors, checks of what is given, files, memory. These know no other part.
GROUND = {
    "arguments",
    "errors",
    "field_types",
    "input_files",
    "long_work",
    "memory",
    "private_directory",
    "quantities",
    "stored_arrays",
}
#: What a part may import of tropel besides itself. Parts that are not named are free, but see `KNOW_ALL_LAYERS`.
MAY_IMPORT: dict[str, set[str]] = {
    **dict.fromkeys(GROUND, GROUND),
    "_kernels": {"private_directory"},
    "registry": {"errors"},
    "world": {"_kernels", *GROUND},
    "agents": {"_kernels", *GROUND, "registry", "world"},
    "behaviours": GROUND,
    "offers": {"world"},
    "reductions": set(),
    "movement": set(),
    "broad_phase": {"_kernels", *GROUND, "agents", "world", "reductions"},
    "contracts": {"_kernels", *GROUND, "agents", "world", "broad_phase", "reductions", "movement"},
    "planning": {"_kernels", *GROUND, "registry", "world", "agents", "behaviours", "contracts", "offers"},
    "environment": {"_kernels", *GROUND, "world", "agents", "contracts"},
    "local": {"_kernels", *GROUND, "world", "agents", "behaviours", "contracts", "offers"},
    "contact": {"_kernels", *GROUND, "movement", "world", "agents", "broad_phase", "reductions"},
    "phases": {"errors", "contact", "contracts"},
    "settling": {"agents", "contracts"},
    "stages": {"_kernels", "errors", "agents", "contact", "contracts", "phases", "settling", "simulation"},
    "timing": set(),
    "analysis": {"_kernels", *GROUND, "recording"},
}
#: The simulation puts the layers together; the others name them to build simulations.
KNOW_ALL_LAYERS = {"simulation", "scenario", "cli", "warmup"}


def imported_modules(source: Path, package: Path) -> Iterator[tuple[str, int]]:
    """Full names of what a file of `package` imports of it, with line numbers."""
    inside = source.relative_to(package.parent).with_suffix("").parts
    here = list(inside if source.name != "__init__.py" else inside[:-1])
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            up = here[: len(here) - node.level + (source.name == "__init__.py")] if node.level else []
            base = ".".join([*up, *([node.module] if node.module else [])])
            names = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if name.split(".")[0] == package.name:
                yield name, node.lineno


def part_of(name: str, package: str = "tropel") -> str:
    """The part of the package that a full name belongs to; names at its top are looked up where they come from."""
    first = name.removeprefix(f"{package}.").split(".")[0]
    home = tropel._WHERE.get(first, "")
    return home.split(".")[1] if home and not (SOURCES / first).exists() else first


def breaches(package: Path) -> list[str]:
    """Every import that breaks the rule, as file:line."""
    found = []
    for source in sorted(package.rglob("*.py")):
        part = source.relative_to(package).parts[0].removesuffix(".py")
        imports = [(part_of(name), line) for name, line in imported_modules(source, package)]
        where = source.relative_to(package.parent).as_posix()
        if part in MAY_IMPORT:
            allowed = MAY_IMPORT[part] | {part, "__version__"}
            found += [f"{where}:{line} imports {other}" for other, line in imports if other not in allowed]
        if part not in KNOW_ALL_LAYERS and set(LAYERS) <= {other for other, _ in imports}:
            found.append(f"{where} imports all layers")
    return found


def test_no_module_imports_what_it_must_not_know() -> None:
    assert breaches(SOURCES) == []


def test_the_rule_names_parts_that_exist() -> None:
    parts = {path.name.removesuffix(".py") for path in SOURCES.iterdir()}
    assert set(MAY_IMPORT) <= parts
    assert parts >= KNOW_ALL_LAYERS


def test_the_simulation_knows_all_layers() -> None:
    imports = {part_of(name) for name, _ in imported_modules(SOURCES / "simulation.py", SOURCES)}
    assert set(LAYERS) <= imports


@pytest.mark.parametrize(
    ("path", "text", "breach"),
    [
        ("planning/mine.py", "from tropel.local.seek import Seek", "tropel/planning/mine.py:1 imports local"),
        ("planning/mine.py", "from tropel.local import seek", "imports local"),
        ("planning/mine.py", "import tropel.environment.grid as g", "imports environment"),
        ("planning/mine.py", "from ..environment import Grid", "imports environment"),
        ("planning/mine.py", "from .. import environment", "imports environment"),
        ("planning/__init__.py", "from ..local.seek import Seek", "imports local"),
        ("local/mine.py", "from tropel import Grid", "imports environment"),
        (
            "local/mine.py",
            "def f():\n    from tropel.simulation import Simulation",
            "local/mine.py:2 imports simulation",
        ),
        ("environment/mine.py", "if TYPE_CHECKING:\n    import tropel.planning", "imports planning"),
        ("_kernels/mine.py", "from tropel.errors import TropelError", "imports errors"),
        ("_kernels/mine.py", "from tropel.agents.state import AgentState", "imports agents"),
        ("world/mine.py", "from tropel.agents.state import AgentState", "imports agents"),
        ("agents/mine.py", "from tropel.planning.direct import Direct", "imports planning"),
        ("contact/mine.py", "from tropel.environment.grid import Grid", "imports environment"),
        ("contracts/mine.py", "from tropel.environment.grid import Grid", "imports environment"),
        ("contracts/mine.py", "from tropel import Simulation", "imports simulation"),
        ("broad_phase/mine.py", "from tropel.contracts import Moment", "imports contracts"),
        ("reductions.py", "from tropel.agents.state import AgentState", "imports agents"),
        ("movement.py", "from tropel.errors import TropelError", "imports errors"),
        ("phases.py", "from tropel.local.lattice import Lattice", "imports local"),
        ("settling.py", "from tropel.simulation import Simulation", "imports simulation"),
        ("local/mine.py", "from tropel.phases import phases_of", "imports phases"),
        ("mixed.py", "from tropel import Direct, Grid, Seek", "mixed.py imports all layers"),
    ],
)
def test_a_breach_is_found(path: str, text: str, breach: str, tmp_path: Path) -> None:
    file = tmp_path / "tropel" / path
    file.parent.mkdir(parents=True)
    file.write_text(text)
    assert any(breach in found for found in breaches(tmp_path / "tropel"))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("planning/mine.py", "from tropel.world import World\nfrom .direct import Direct\nimport numpy"),
        ("local/mine.py", "from tropel._kernels.cells import CellList\nfrom tropel import TropelError"),
        ("local/mine.py", "from tropel import Model, Moment\nfrom tropel.contracts.near import table_of_lists"),
        ("environment/mine.py", "from tropel.contracts import Environment, Near"),
        ("scenario/mine.py", "from tropel import Direct, Grid, Seek"),
    ],
)
def test_what_is_allowed_is_not_a_breach(path: str, text: str, tmp_path: Path) -> None:
    file = tmp_path / "tropel" / path
    file.parent.mkdir(parents=True)
    file.write_text(text)
    assert breaches(tmp_path / "tropel") == []
