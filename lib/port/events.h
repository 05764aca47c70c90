/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a port's device, for any thread, and its changes. */
#ifndef MRI_PORT_EVENTS_H
#define MRI_PORT_EVENTS_H

#include <pthread.h>

#include <millrace/driver.h>

#include "port/spec.h"

enum { MRI_KEPT_DROPS = 32 };

/* A device drop. */
struct mr_parcel;

struct mri_kept_drop {
	char name[40];
	uint64_t value;
};

enum mri_setting {
	MRI_SET_MAC,
	MRI_SET_MTU,
	MRI_SET_ALLMULTI,
	MRI_SET_PROMISC,
	MRI_N_SETTINGS,
};

/* What the program set since the port was opened. */
struct mri_settings {
	bool is_made[MRI_N_SETTINGS];
	uint64_t values[MRI_N_SETTINGS]; /* a MAC address in memory order */
	uint8_t (*macs)[6]; /* of the filter; NULL: none */
	uint32_t n_macs;
	char *filter; /* NULL: none */
};

/* What a port keeps when it is opened again. */
struct mri_kept {
	struct mri_settings settings;
	char spec[MRI_SPEC_MAX_BYTES];
	const struct mr_driver *driver;
	/* Counters of all its earlier queues; queue 0 includes them. */
	struct mr_rx_stats rx;
	struct mr_tx_stats tx;
	struct mri_kept_drop drops[MRI_KEPT_DROPS];
	uint32_t n_drops;
};

struct mri_events {
	struct mr_port_info info; /* port->info: the driver's */
	pthread_mutex_t lock;     /* of shown, link and link_err */
	struct mr_port_info shown;
	struct mr_link link;
	int link_err; /* returned by mr_port_link() */
	mr_port_event_fn *fn;
	void *opaque;
	struct mri_kept kept;
	/* Of a port that is being taken over: what was offered; NULL: none. */
	struct mr_parcel *parcel;
	uint32_t number; /* of the port's folder in it */
	bool must_filter; /* its filter is not that of the spec */
};

/* events: zeroed memory that belongs to the port. */
void mri_events_begin(struct mr_port *port, struct mri_events *events);
void mri_events_end(struct mr_port *port);

/*
 * Publish the driver's port->info and link for other threads. Returns the
 * changes as MR_PORT_EVENT_* bits.
 */
uint32_t mri_events_publish(struct mr_port *port);

/* Add the kept counters to those of queue 0. */
void mri_kept_add_rx(const struct mr_rxq *rxq, struct mr_rx_stats *stats);
void mri_kept_add_tx(const struct mr_txq *txq, struct mr_tx_stats *stats);

/* device.c: repeat the settings, and log those that are refused now. */
void mri_settings_repeat(struct mr_port *port);
void mri_settings_free(struct mr_port *port);

/* Publish, and tell the subscriber. Returns whether something changed. */
bool mri_events_tell(struct mr_port *port);

#endif
