# SPDX-License-Identifier: BSD-3-Clause
"""mrctl: ask running programs, and watch them."""
