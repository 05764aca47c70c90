# SPDX-License-Identifier: BSD-3-Clause
"""./mr bench fwd [options] [NAME...]: what a frame costs without a wire."""
import sys

import mem_bench

if __name__ == "__main__":
    sys.exit(mem_bench.main("fwd"))
