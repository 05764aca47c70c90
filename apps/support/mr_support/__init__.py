# SPDX-License-Identifier: BSD-3-Clause
"""What the programs in Python share."""
