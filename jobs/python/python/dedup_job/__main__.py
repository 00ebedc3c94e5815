"""The command dedup-job: `dedup-job`, or `python -m dedup_job`."""

from __future__ import annotations

import json
import os
import signal
import sys

# Started by its path, as jobs are: the package is imported from where this file lies, and no file in this directory, or in
# the current one, takes the place of a module.
if not __package__:
    _DIRECTORY = os.path.dirname(os.path.abspath(__file__))
    sys.path[0:1] = []
    sys.path.append(os.path.dirname(_DIRECTORY))

from dedup_job import _native
from dedup_job._process import HIDDEN, PARENT, options_end


def main() -> None:
    """Run the command, and end the process with its exit code."""
    # Python's handler would only set a flag, which nobody looks at before the program has its own handler.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    parent = os.environ.pop(PARENT, None)
    arguments = sys.argv[1:]
    end = options_end(arguments)
    arguments[end:end] = json.loads(os.environ.pop(HIDDEN, "[]"))
    code = _native.main(["dedup-job", *arguments], int(parent) if parent else None)
    # Nothing of Python's is left to do, and abandoned work of the program must not delay the exit.
    sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
