# SPDX-License-Identifier: BSD-3-Clause
"""mr-devices: move network devices between the kernel and vfio-pci."""
