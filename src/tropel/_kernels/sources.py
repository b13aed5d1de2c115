"""Which source files a compiled kernel comes from.

Numba notices an edit of the file that a kernel stands in, but not an edit of another module whose kernels or constants
were compiled into it: a stale kernel then keeps running. So a compiled kernel carries a digest of its own file and of
all files of the package that this file imports, directly or through others. An edit compiles anew what can be affected
by it and nothing else: a digest of the whole package meant minutes of compiling after each edit of any kernel.

Imports are found in the text, in functions and under `TYPE_CHECKING` too. A few files too many do no harm.
"""

from __future__ import annotations

import functools
import hashlib
import re
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent
_IMPORT = re.compile(
    r"^[ \t]*from[ \t]+(?P<base>tropel[\w.]*)[ \t]+import[ \t]+(?P<names>\([^)]*\)|[^\n]*)"
    r"|^[ \t]*import[ \t]+(?P<module>tropel[\w.]*)",
    re.MULTILINE,
)
_NAME = re.compile(r"(\w+)(?:\s+as\s+\w+)?")
_COMMENT = re.compile(r"#.*")


@functools.cache
def source_digest(path: str) -> str:
    """Digest of a file and of everything of the package that it imports."""
    start = Path(path).resolve()
    digest = hashlib.sha256(start.read_bytes())
    for file in sorted(files_behind(start)):
        digest.update(file.relative_to(_PACKAGE).as_posix().encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()


def files_behind(start: Path) -> set[Path]:
    """The files of the package that a file imports, directly or through others."""
    found: set[Path] = set()
    waiting = [start]
    while waiting:
        new = _imported(waiting.pop()) - found
        found |= new
        waiting.extend(new)
    return found


@functools.cache
def _imported(file: Path) -> frozenset[Path]:
    found: set[Path | None] = set()
    for statement in _IMPORT.finditer(file.read_text(encoding="utf-8")):
        if statement["module"]:
            found.add(_file_of(statement["module"]))
            continue
        names = _NAME.findall(_COMMENT.sub("", statement["names"]))
        modules = {_file_of(f"{statement['base']}.{name}") for name in names}
        # What is not a module of its own comes from the package.
        found |= modules if None not in modules else modules | {_file_of(statement["base"])}
    return frozenset(one for one in found if one is not None)


@functools.cache
def _file_of(module: str) -> Path | None:
    path = _PACKAGE.joinpath(*module.split(".")[1:])
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.is_file():
            return file
    return None
