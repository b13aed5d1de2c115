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

#: What everything else stands on.
BASE = {"errors", "foundation"}
CORE = {*BASE, "_kernels", "agents", "world"}
#: What reads files and draws, and knows nothing of layers.
FILES = {*BASE, "analysis", "pictures", "recording"}
#: What each part, or a module of it with a stricter rule, may import of tropel besides itself.
MAY_IMPORT: dict[str, set[str]] = {
    "errors": {"foundation"},
    "foundation": {"errors"},
    "foundation.reductions": set(),
    "registry": {"errors"},
    "_kernels": {"foundation"},
    "world": {*BASE, "_kernels"},
    "agents": {*BASE, "_kernels", "registry", "world"},
    "broad_phase": CORE,
    "contracts": {*CORE, "broad_phase"},
    "deciding": {*CORE, "contracts"},
    "knowing": {*CORE, "contracts"},
    "planning": {*CORE, "contracts", "registry"},
    "environment": {*CORE, "contracts"},
    "local": {*CORE, "contracts", "riders"},
    "riders": {*BASE, "_kernels"},
    "contact": {*CORE, "broad_phase", "contracts"},
    "encounters": {*CORE, "broad_phase", "recording"},
    "checks": {*CORE, "contracts", "events", "registry", "run", "simulation"},
    "events": {*BASE, "agents", "registry", "simulation", "world"},
    "recording": {*BASE, "run", "simulation", "world"},
    "run": {*CORE, "checks", "contact", "contracts", "encounters", "events", "knowing", "recording", "simulation"},
    "run.phases": {"errors", "contact", "contracts"},
    "run.stages": {
        *("_kernels", "agents", "broad_phase", "contact", "contracts", "errors", "knowing", "run", "simulation"),
    },
    "run.observers": {*BASE, "run", "simulation"},
    "defaults": {*CORE, "contracts", "deciding", *LAYERS},
    "simulation": {
        *(*CORE, "broad_phase", "checks", "contact", "contracts", "defaults", "encounters", "events", "recording"),
        *("knowing", "run", "viewer"),
    },
    "analysis": {*BASE, "_kernels", "recording"},
    "pictures": {*FILES, "world"},
    "interop": {*BASE, "recording"},
    "viewer": {*FILES, "agents", "contracts", "events", "run", "simulation", "world"},
    "scenario": {*CORE, *FILES, "checks", "contracts", "events", "knowing", "registry", "run", "simulation"},
    "figures": {
        *(*CORE, *FILES, "bench", "contracts", "deciding", "environment", "local", "planning", "riders", "scenario"),
        "simulation",
    },
    "testing": {*CORE, "broad_phase", "contracts", "run", "simulation"},
    "verification": {*BASE, "agents", "contracts", "defaults", "pictures", "registry", "scenario", "simulation"},
    "bench": {*CORE, "analysis", "broad_phase", "contracts", "deciding", "knowing", "riders", "simulation", *LAYERS},
    "warmup": {*CORE, "warmup_scenes"},
    "warmup_scenes": {*CORE, "analysis", "contracts", "deciding", "events", "knowing", "run", "simulation", *LAYERS},
    "cli": {
        *(*FILES, "agents", "bench", "figures", "riders", "run", "scenario", "verification", "viewer", "warmup"),
        "warmup_scenes",
    },
}
#: The simulation puts the layers together; the others name them to build simulations.
KNOW_ALL_LAYERS = {"defaults", "bench", "warmup_scenes"}


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


def rule_for(module: str) -> set[str] | None:
    """What a module such as `run.phases` may import: the strictest rule that names it or a part it belongs to."""
    while module and module not in MAY_IMPORT:
        module = module.rpartition(".")[0]
    return MAY_IMPORT.get(module)


def breaches(package: Path) -> list[str]:
    """Every import that breaks the rule, as file:line."""
    found = []
    for source in sorted(package.rglob("*.py")):
        if source == package / "__init__.py":  # imports what it is asked for, by name
            continue
        module = source.relative_to(package).with_suffix("").parts
        part, where = module[0], source.relative_to(package.parent).as_posix()
        allowed = rule_for(".".join(module))
        if allowed is None:
            found.append(f"{where} has no rule")
            continue
        imports = [(part_of(name), line) for name, line in imported_modules(source, package)]
        own = {part, "__version__"} if ".".join(module) not in MAY_IMPORT or len(module) == 1 else {"__version__"}
        found += [f"{where}:{line} imports {other}" for other, line in imports if other not in allowed | own]
        if part not in KNOW_ALL_LAYERS and set(LAYERS) <= {other for other, _ in imports}:
            found.append(f"{where} imports all layers")
    return found


def test_no_module_imports_what_it_must_not_know() -> None:
    assert breaches(SOURCES) == []


def test_every_part_has_a_rule_and_every_rule_a_part() -> None:
    parts = {path.name.removesuffix(".py") for path in SOURCES.iterdir() if path.suffix in ("", ".py")}
    parts -= {"__init__", "__pycache__"}
    assert {name.split(".")[0] for name in MAY_IMPORT} == parts
    named = [name for name in MAY_IMPORT if "." in name]
    assert all((SOURCES / (name.replace(".", "/") + ".py")).exists() for name in named)
    assert parts >= KNOW_ALL_LAYERS


def test_the_layers_and_contact_do_not_know_each_other() -> None:
    apart = {*LAYERS, "contact"}
    for part in apart:
        assert not MAY_IMPORT[part] & (apart - {part})


def test_only_the_defaults_of_the_engine_know_all_layers() -> None:
    imports = {part_of(name) for name, _ in imported_modules(SOURCES / "defaults.py", SOURCES)}
    assert set(LAYERS) <= imports
    imports = {part_of(name) for name, _ in imported_modules(SOURCES / "simulation.py", SOURCES)}
    assert not set(LAYERS) & imports


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
        ("foundation/reductions.py", "from tropel.errors import TropelError", "imports errors"),
        ("foundation/mine.py", "from tropel.agents.state import AgentState", "imports agents"),
        ("run/phases.py", "from tropel.local.lattice import Lattice", "imports local"),
        ("run/phases.py", "from tropel.run.loop import Run", "imports run"),
        ("run/observers.py", "from tropel.recording import Recorder", "imports recording"),
        ("recording/mine.py", "from tropel.pictures import draw_run", "imports pictures"),
        ("pictures/mine.py", "from tropel.simulation import Simulation", "imports simulation"),
        ("viewer/live/mine.py", "from tropel.local.seek import Seek", "imports local"),
        ("local/mine.py", "from tropel.run.phases import phases_of", "imports run"),
        ("unknown/mine.py", "import numpy", "has no rule"),
        ("figures/mixed.py", "from tropel import Direct, Grid, Seek", "mixed.py imports all layers"),
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
        ("bench/mine.py", "from tropel import Direct, Grid, Seek"),
    ],
)
def test_what_is_allowed_is_not_a_breach(path: str, text: str, tmp_path: Path) -> None:
    file = tmp_path / "tropel" / path
    file.parent.mkdir(parents=True)
    file.write_text(text)
    assert breaches(tmp_path / "tropel") == []
