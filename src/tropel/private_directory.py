"""Directories for caches, to which only their owner can write: compiled kernels are code, and plans decide results.

A directory is private when it belongs to the user or to root, nobody else can write to it, and the same holds for every
directory and symbolic link on the path to it, since another user could otherwise put a different one in its place.
"""

from __future__ import annotations

import functools
import os
import stat
from pathlib import Path


def user_cache() -> Path | None:
    """The directory for all of the user's caches; None when there is no home directory."""
    told = os.environ.get("XDG_CACHE_HOME", "")
    # The specification of that variable says that relative paths are to be ignored.
    base = told if os.path.isabs(told) else os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base, "tropel") if os.path.isabs(base) else None


def make_private(path: Path) -> str:
    """Make a directory that only its owner can use, if it is missing; returns why it is not private, or nothing."""
    path = path.absolute()
    try:
        missing = [place for place in (path, *path.parents) if not place.exists()]
        # Nothing is made in directories of others.
        fault = _fault_above(path.parents[len(missing) - 1]) if missing else _fault(path)
        if fault or not missing:
            return fault
        for place in reversed(missing):
            place.mkdir(mode=0o700, exist_ok=True)
        return _fault(path)  # somebody else may have been faster
    except OSError as error:
        return error.strerror or str(error)


def _fault(path: Path) -> str:
    real = Path(os.path.realpath(path))
    if not real.is_dir():
        return "it is not a directory"
    if os.name != "nt" and others_can_write(real.stat()):
        return _open_to_others(real)
    return _fault_above(path)


def _fault_above(path: Path) -> str:
    """What lets others put something in the place of a directory below this one, which may be shared as /tmp is."""
    if os.name == "nt":  # owners and bits of the mode say nothing there
        return ""
    real = Path(os.path.realpath(path))
    for place in dict.fromkeys((real, *real.parents, path, *path.parents)):
        about = place.lstat()
        if not belongs_to_the_trusted(about):
            return f"{place} belongs to another user, number {about.st_uid}"
        # In a sticky directory nobody can rename or remove what belongs to others.
        if others_can_write(about) and not (about.st_mode & stat.S_ISVTX or _is_only_for_the_user_s_group(about)):
            return _open_to_others(place)
    return ""


def _open_to_others(place: Path) -> str:
    shared = place.stat().st_mode & stat.S_ISVTX  # on purpose, as /tmp is
    remedy = "choose a directory below it" if shared else f"run  chmod go-w '{place}'"
    return f"other users can write to {place}; {remedy}"


def belongs_to_the_trusted(about: os.stat_result) -> bool:
    """Whether a file belongs to the user or to root, who can do everything anyway."""
    # In a sandbox root may have another number: that of the owner of "/".
    return about.st_uid in (0, os.geteuid(), os.stat("/").st_uid)


def others_can_write(about: os.stat_result) -> bool:
    # The bits of a symbolic link mean nothing.
    return not stat.S_ISLNK(about.st_mode) and bool(about.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _is_only_for_the_user_s_group(about: os.stat_result) -> bool:
    """Whether only a group without other members can write to it: many systems make home directories like that."""
    return not about.st_mode & stat.S_IWOTH and about.st_gid in _groups_without_others(os.geteuid())


@functools.cache
def _groups_without_others(user: int) -> tuple[int, ...]:
    import grp
    import pwd

    try:
        account = pwd.getpwuid(user)
        group = grp.getgrgid(account.pw_gid)
    except KeyError:
        return (0,)
    alone = group.gr_name == account.pw_name and set(group.gr_mem) <= {account.pw_name}
    return (0, group.gr_gid) if alone else (0,)
