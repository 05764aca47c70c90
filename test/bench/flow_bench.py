# SPDX-License-Identifier: BSD-3-Clause
"""./mr bench flow [options] [NAME...]: flow tables beside rte_hash."""
import sys

import mem_bench

if __name__ == "__main__":
    sys.exit(mem_bench.main("flow"))
