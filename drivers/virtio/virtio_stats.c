/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device's own counters (DEVICE_STATS), requested with a command per queue,
 * summed over all queues, with the names of the specification.
 *
 *     command: queue, types  -->  answer, then for each type: its number,
 *                                 bytes that it has, its counters
 *
 * Counters have types, which depend on the negotiated features. Those of the
 * control queue (type 32) are not requested.
 *
 * Source: virtio 1.4, 5.1.6.5 "Device Statistics".
 */
#include <errno.h>
#include <string.h>

#include "virtio.h"

enum {
	REPLY_BYTES = 8, /* the header of each type's reply */
	SIZE_AT = 6,     /* of it, header included */
	RESULT_BYTES = VIRTIO_MAX_RESULT_BYTES,
	MAX_COUNTERS = 6,
	TX_TYPE = 16, /* types of tx queues begin here */
};

/* A type of counters, and the features of which it needs one; 0: none. */
static const struct type {
	uint32_t number;
	uint64_t needs;
	const char *names[MAX_COUNTERS + 1];
} types[] = {
	{ 0,
	  0,
	  { "rx_notifications", "rx_packets", "rx_bytes", "rx_interrupts",
	    "rx_drops", "rx_drop_overruns" } },
	{ 1,
	  UINT64_C(1) << VIRTIO_F_GUEST_CSUM,
	  { "rx_csum_valid", "rx_needs_csum", "rx_csum_none", "rx_csum_bad" } },
	{ 2,
	  UINT64_C(1) << VIRTIO_F_GUEST_TSO4 | UINT64_C(1)
						       << VIRTIO_F_GUEST_TSO6,
	  { "rx_gso_packets", "rx_gso_bytes", "rx_gso_packets_coalesced",
	    "rx_gso_bytes_coalesced" } },
	{ 3,
	  0,
	  { "rx_packets_allowance_exceeded", "rx_bytes_allowance_exceeded" } },
	{ TX_TYPE,
	  0,
	  { "tx_notifications", "tx_packets", "tx_bytes", "tx_interrupts",
	    "tx_drops", "tx_drop_malformed" } },
	{ TX_TYPE + 1,
	  UINT64_C(1) << VIRTIO_F_CSUM,
	  { "tx_csum_none", "tx_needs_csum" } },
	{ TX_TYPE + 2,
	  UINT64_C(1) << VIRTIO_F_HOST_TSO4 |
		  UINT64_C(1) << VIRTIO_F_HOST_TSO6 |
		  UINT64_C(1) << VIRTIO_F_HOST_USO,
	  { "tx_gso_packets", "tx_gso_bytes", "tx_gso_segments",
	    "tx_gso_segments_bytes", "tx_gso_packets_noseg",
	    "tx_gso_bytes_noseg" } },
	{ TX_TYPE + 3,
	  0,
	  { "tx_packets_allowance_exceeded", "tx_bytes_allowance_exceeded" } },
};

enum { N_TYPES = sizeof(types) / sizeof(types[0]) };
_Static_assert(N_TYPES *MAX_COUNTERS <= VIRTIO_N_COUNTS, "room for all");

static bool has_type(const struct virtio_port *port, uint32_t number)
{
	return port->stats_types >> number & 1;
}

int mri_virtio_stats_setup(struct virtio_port *port)
{
	uint64_t offered = 0;
	int err;

	port->stats_types = 0;
	if (!virtio_has(port, VIRTIO_F_DEVICE_STATS))
		return 0;
	err = mri_virtio_ctrl_ask(port, VIRTIO_CTRL_STATS_QUERY, NULL, 0,
				  &offered, sizeof(offered));
	if (port->ctrl.is_stuck)
		return err;
	if (err < 0)
		return 0; /* it refuses: there are none */
	for (uint32_t i = 0; i < N_TYPES; i++)
		if (types[i].needs == 0 || port->features & types[i].needs)
			port->stats_types |=
				offered & UINT64_C(1) << types[i].number;
	return 0;
}

/* Add the reply of one type, in n_bytes. False: counters are missing. */
static bool add_type(const uint8_t *bytes, uint32_t n_bytes, uint32_t number,
		     uint64_t *sums)
{
	uint32_t i = 0, at = REPLY_BYTES;
	uint64_t value;

	while (types[i].number != number)
		i++;
	for (uint32_t k = 0; types[i].names[k] != NULL; k++) {
		if (at + sizeof(value) > n_bytes)
			return false;
		memcpy(&value, bytes + at, sizeof(value));
		sums[i * MAX_COUNTERS + k] += value;
		at += sizeof(value);
	}
	return true;
}

/*
 * Add the device's reply, which is untrusted. -EIO: it is not exactly one reply
 * of each requested type.
 */
static int add_result(const uint8_t *bytes, uint64_t asked, uint64_t *sums)
{
	uint32_t at = 0, number;
	uint16_t n_bytes;

	while (asked != 0) {
		if (at + REPLY_BYTES > RESULT_BYTES)
			return -EIO;
		number = bytes[at];
		if (number >= 64 || !(asked >> number & 1))
			return -EIO;
		memcpy(&n_bytes, bytes + at + SIZE_AT, sizeof(n_bytes));
		if (n_bytes > RESULT_BYTES - at ||
		    !add_type(bytes + at, n_bytes, number, sums))
			return -EIO;
		asked &= ~(UINT64_C(1) << number);
		at += n_bytes;
	}
	return 0;
}

static int ask_queue(struct virtio_port *port, uint32_t number, uint64_t *sums)
{
	const uint64_t mine = (UINT64_C(1) << TX_TYPE) - 1;
	const uint64_t request[] = {
		number, port->stats_types & (number % 2 ? ~mine : mine)
	};
	uint8_t result[RESULT_BYTES];
	int err;

	if (request[1] == 0)
		return 0;
	err = mri_virtio_ctrl_ask(port, VIRTIO_CTRL_STATS_GET, request,
				  sizeof(request), result, sizeof(result));
	return err < 0 ? err : add_result(result, request[1], sums);
}

/* If a queue's answer is missing or wrong, keep the previous counters. */
static void read_all(struct virtio_port *port)
{
	uint64_t sums[VIRTIO_N_COUNTS] = { 0 };

	for (uint32_t i = 0; i < 2 * port->options.n_queues; i++)
		if (ask_queue(port, i, sums) < 0)
			return;
	memcpy(port->counts, sums, sizeof(sums));
}

uint32_t mri_virtio_device_stats(const struct mr_port *base,
				 struct mr_named_count *ret_counts, uint32_t n)
{
	struct virtio_port *port = (struct virtio_port *)base;
	uint32_t n_all = 0;

	if (n > 0 && port->stats_types != 0)
		read_all(port);
	for (uint32_t i = 0; i < N_TYPES; i++)
		for (uint32_t k = 0; types[i].names[k] != NULL; k++) {
			if (!has_type(port, types[i].number))
				break;
			if (n_all < n)
				ret_counts[n_all] = (struct mr_named_count){
					types[i].names[k],
					port->counts[i * MAX_COUNTERS + k]
				};
			n_all++;
		}
	return n_all;
}
