# SPDX-License-Identifier: BSD-3-Clause
"""./mr bench flow [arguments of ./mr bench mem]: flow tables beside rte_hash."""
import sys

import mem_bench

if __name__ == "__main__":
    sys.exit(mem_bench.main("flow"))
