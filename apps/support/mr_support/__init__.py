# SPDX-License-Identifier: BSD-3-Clause
"""Code shared by the programs in Python."""
