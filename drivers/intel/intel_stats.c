/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device's counters: 32 bits, cleared by reading, summed here to 64. At 1
 * Gbit/s the fastest 32-bit one (frames) overflows in 48 minutes and the 64-bit
 * ones never; mr_port_poll() reads them each second. Source: the datasheets'
 * "Statistics Registers".
 */
#include <errno.h>

#include "intel.h"

/* With the names of the datasheets. */
static const struct {
	const char *name;
	uint16_t reg;
	bool is_64; /* the upper half is in the next register */
} counters[] = {
	{ "gprc", 0x4074, false },    /* good frames received */
	{ "gorc", 0x4088, true },     /* their bytes, FCS included */
	{ "bprc", 0x4078, false },    /* of those, broadcast */
	{ "mprc", 0x407c, false },    /* and multicast */
	{ "gptc", 0x4080, false },    /* good frames sent */
	{ "gotc", 0x4090, true },     /* their bytes, FCS included */
	{ "tpr", 0x40d0, false },     /* all frames received */
	{ "tpt", 0x40d4, false },     /* all frames sent */
	{ "crcerrs", 0x4000, false }, /* wrong FCS */
	{ "rxerrc", 0x400c, false },  /* errors from the PHY */
	{ "mpc", 0x4010, false },     /* missed: no room in the device */
	{ "rnbc", 0x40a0, false },    /* no buffer; may wait for one */
	{ "ruc", 0x40a4, false },     /* too short */
	{ "roc", 0x40ac, false },     /* too long */
};

/* Their places, for mri_intel_device_drops(). */
enum { CRCERRS = 8, MPC = 10, ROC = 13, N_COUNTERS = 14, RQDPC = N_COUNTERS };

_Static_assert(sizeof(counters) / sizeof(counters[0]) == N_COUNTERS,
	       "the places are those of the table");

int mri_intel_stats_open(struct intel_port *port)
{
	port->stats = mr_alloc(port->base.ctx, 0,
			       (N_COUNTERS + 1) * sizeof(port->stats[0]));
	if (port->stats == NULL)
		return -ENOMEM;
	return 0;
}

/* If two threads read at once, each gets a part; both add. */
static void add(const struct intel_port *port, uint32_t i, uint64_t n)
{
	__atomic_fetch_add(&port->stats[i], n, __ATOMIC_RELAXED);
}

static uint64_t sum(const struct intel_port *port, uint32_t i)
{
	return __atomic_load_n(&port->stats[i], __ATOMIC_RELAXED);
}

/* A count; 0 if the device is gone. */
static uint32_t read_counter(const struct intel_port *port, uint32_t reg)
{
	const uint32_t n = intel_read(port, reg);

	return n != UINT32_MAX ? n : 0;
}

static void read_one(const struct intel_port *port, uint32_t i)
{
	uint64_t n = read_counter(port, counters[i].reg);

	if (counters[i].is_64) /* reading the upper half clears both */
		n |= (uint64_t)read_counter(port, counters[i].reg + 4) << 32;
	add(port, i, n);
}

/*
 * Drops of full queues, which igb counts. One reader at a time: reading does
 * not clear the I210's, so two would add the same frames. The other gets the
 * previous count.
 */
static void read_rqdpc(struct intel_port *port)
{
	if (__atomic_exchange_n(&port->is_reading_rqdpc, true,
				__ATOMIC_ACQUIRE))
		return;
	for (uint32_t i = 0; port->chip->is_igb && i < port->n_queues; i++) {
		const uint32_t reg = intel_rx_ring(i) + INTEL_RQDPC;

		add(port, RQDPC, read_counter(port, reg));
		if (port->chip->is_i210)
			intel_write(port, reg, 0);
	}
	__atomic_store_n(&port->is_reading_rqdpc, false, __ATOMIC_RELEASE);
}

void mri_intel_stats_read(struct intel_port *port)
{
	if (intel_is_gone(port))
		return;
	for (uint32_t i = 0; i < N_COUNTERS; i++)
		read_one(port, i);
	read_rqdpc(port);
}

uint32_t mri_intel_device_stats(const struct mr_port *base,
				struct mr_named_count *ret_counts, uint32_t n)
{
	const struct intel_port *port = (const struct intel_port *)base;
	const uint32_t n_all = N_COUNTERS + (port->chip->is_igb ? 1 : 0);

	mri_intel_stats_read((struct intel_port *)base);
	for (uint32_t i = 0; i < n && i < n_all; i++)
		ret_counts[i] = (struct mr_named_count){
			i == RQDPC ? "rqdpc" : counters[i].name, sum(port, i)
		};
	return n_all;
}

/*
 * Frames that no queue has seen. RNBC does not count: such a frame waits in the
 * device, and is in MPC or RQDPC if it is lost.
 */
uint32_t mri_intel_device_drops(const struct mr_port *base,
				struct mr_named_count *ret_counts, uint32_t n)
{
	static const struct {
		const char *name;
		uint32_t idx;
	} drops[] = {
		{ "rx_missed", MPC },
		{ "rx_queue_full", RQDPC },
		{ "rx_crc_errors", CRCERRS },
		{ "rx_too_long", ROC },
	};
	const uint32_t n_all = sizeof(drops) / sizeof(drops[0]);
	struct intel_port *port = (struct intel_port *)base;

	if (!intel_is_gone(port)) {
		read_one(port, MPC);
		read_one(port, CRCERRS);
		read_one(port, ROC);
		read_rqdpc(port);
	}
	for (uint32_t i = 0; i < n && i < n_all; i++)
		ret_counts[i] =
			(struct mr_named_count){ drops[i].name,
						 sum(port, drops[i].idx) };
	return n_all;
}
