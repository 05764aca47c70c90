# SPDX-License-Identifier: BSD-3-Clause
"""Where modules of these tests are, and fixtures of all of them."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from bench_program import bench, document, files  # noqa: E402,F401 pylint: disable=wrong-import-position,unused-import
