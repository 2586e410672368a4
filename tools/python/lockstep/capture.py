"""python -m lockstep.capture [OPTION...] -- COMMAND...: lockstep capture, with the programs of this Python first on the path,
so that torchrun and the like are its own. lockstep is looked for where the library is, and on the path."""

import os
import sys
from pathlib import Path

from ._binding import _candidates


def _program():
    named = os.environ.get("LOCKSTEP_LIBRARY")
    for library in filter(Path.exists, [Path(named)] if named else _candidates()):
        for program in ("../../cli/lockstep", "../bin/lockstep", "../../bin/lockstep"):
            path = library.parent.joinpath(program)
            if path.exists():
                return str(path.resolve())
    return "lockstep"


def main():
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    try:
        os.execvpe(_program(), ["lockstep", "capture", *sys.argv[1:]], {**os.environ, "PATH": path})
    except FileNotFoundError:
        sys.exit("lockstep.capture: no program lockstep near the library or on the path")


if __name__ == "__main__":
    main()
