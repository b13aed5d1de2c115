"""A process that records until it is killed, or until its files may grow no further.

writing_process.py endless PATH DIM         write and flush, print the number of each flushed frame
writing_process.py limited PATH DIM BYTES   the same with ever larger frames under a limit for the size of files
writing_process.py unclosed PATH DIM        write a few frames and die of an error without closing
"""

from __future__ import annotations

import itertools
import resource
import sys

import sample_run

from tropel.errors import RecordingError
from tropel.recording import open_trajectory


def endless(path: str, dim: int) -> None:
    with open_trajectory(path, scene=sample_run.scene(dim), fps=sample_run.FPS) as writer:
        for frame in itertools.count():
            sample_run.write_frames(writer, range(frame, frame + 1), dim, count=400)
            if frame % 3 == 0:
                writer.flush()
                print(frame, flush=True)


def limited(path: str, dim: int, size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    try:
        with open_trajectory(path, scene=sample_run.scene(dim), fps=sample_run.FPS) as writer:
            sample_run.write_frames(writer, range(10), dim)
            writer.flush()
            for frame in itertools.count(10):
                sample_run.write_frames(writer, range(frame, frame + 1), dim, count=2000 * frame)
    except RecordingError as error:
        print(error)
        sys.exit(3)


def unclosed(path: str, dim: int) -> None:
    writer = open_trajectory(path, scene=sample_run.scene(dim), fps=sample_run.FPS)
    sample_run.write_frames(writer, range(5), dim)
    raise RuntimeError("a model went wrong")


if __name__ == "__main__":
    name, path, dim, *rest = sys.argv[1:]
    {"endless": endless, "limited": limited, "unclosed": unclosed}[name](path, int(dim), *map(int, rest))
