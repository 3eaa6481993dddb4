"""Prints a re-coded trace of sessions as lines that kvcache-simulator reads: ids are made unique per session."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "reference"))

from untyped import session_lines  # noqa: E402

for line in session_lines(sys.argv[1]):
    print(line)
