# SPDX-License-Identifier: BSD-3-Clause
"""Where the packed program starts."""

from mr_bench.main import main

main()
