# SPDX-License-Identifier: BSD-3-Clause
"""The front end of mr-bench."""
