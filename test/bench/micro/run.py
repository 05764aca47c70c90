# SPDX-License-Identifier: BSD-3-Clause
"""usage: run.py MR_MICRO mem|flow|fwd [options] [NAME...]: what ./mr bench does,
without its huge pages."""
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from micro import front  # noqa: E402 pylint: disable=wrong-import-position

if __name__ == "__main__":
    sys.exit(front.main(*sys.argv[1:3], sys.argv[3:]))
