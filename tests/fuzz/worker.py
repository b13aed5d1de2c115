"""The process in which cases are tried: requests come as lines of JSON, and so do outcomes go.

Argument: a file for whatever is printed meanwhile, and for the stacks of threads when asked for them or on a crash.
"""

from __future__ import annotations

import dataclasses
import faulthandler
import gc
import json
import os
import random
import resource
import shutil
import signal
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

#: Address space [bytes]. Kernels, threads and Arrow alone reserve about two gigabytes without using them.
ADDRESS_SPACE = 8 << 30


def serve(log: Path) -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    printed = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    faulthandler.enable(file=printed, all_threads=True)
    faulthandler.register(signal.SIGUSR1, file=printed, all_threads=True)
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    from .fuzzers import fuzzer

    for line in sys.stdin:
        os.truncate(log, 0)
        answers.write(json.dumps(_answer(json.loads(line), fuzzer)) + "\n")
        answers.flush()
        gc.collect()


def _answer(request: dict[str, Any], fuzzer: Any) -> dict[str, Any]:
    from .outcome import finding, of_error

    tried = fuzzer(request["fuzzer"])
    folder = Path(request["folder"])
    if request["do"] == "prepare":
        tried.prepare(folder)
        return {}
    if request["do"] == "make":
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        chance = random.Random(f"{tried.name}:{request['seed']}:{request['number']}")
        try:
            tried.make(chance, folder, Path(request["prepared"]))
        except Exception as error:
            return dataclasses.asdict(
                finding("fuzzer", type(error).__name__, "".join(traceback.format_exception(error)))
            )
    os.chdir(folder)
    began = time.perf_counter()
    try:
        outcome = tried.run(folder)
    except SystemExit as error:
        outcome = finding("traceback", "SystemExit", repr(error))
    except BaseException as error:  # whatever it is, the next case is to be tried as well
        outcome = of_error(error, ())
    finally:
        os.chdir("/")
    return dataclasses.asdict(dataclasses.replace(outcome, seconds=time.perf_counter() - began))


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
