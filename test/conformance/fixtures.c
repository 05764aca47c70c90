/* SPDX-License-Identifier: BSD-3-Clause */
#include "suite.h"

const struct fixture *const suite_fixtures[] = { &fixture_null,
						 &fixture_pair,
						 &fixture_ruled,
						 &fixture_pcap,
						 &fixture_xdp,
						 &fixture_igb,
						 &fixture_e1000e,
						 &fixture_virtio,
						 &fixture_virtio_plain,
						 &fixture_virtio_user,
						 &fixture_virtio_user_server,
						 &fixture_tap,
						 &fixture_vhost,
						 NULL };
