# SPDX-License-Identifier: BSD-3-Clause
"""The schema of a program's reports: what all have, and its own.

usage: report_schema.py COMMON OWN      (the result is on stdout)
"""

import json
import sys
from pathlib import Path
from typing import Any


def merge(common: Any, own: Any) -> Any:
    """Objects and lists of both; else what is the program's own."""
    if isinstance(common, dict):
        return common | {key: merge(common[key], value) if key in common else value
                         for key, value in own.items()}
    return common + own if isinstance(common, list) else own


if __name__ == "__main__":
    both = [json.loads(Path(name).read_text("utf-8")) for name in sys.argv[1:]]
    print(json.dumps(merge(*both), indent=2))
