/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports of our drivers on models: a context, a pool, up to two NICs on one
 * wire. For the tests of faults, of two NICs, of offloads, and the fuzzer.
 */
#ifndef MODEL_PORT_HARNESS_H
#define MODEL_PORT_HARNESS_H

#include <stdbool.h>
#include <stdint.h>

#include <millrace/millrace.h>

#include "model/intel.h"

enum { PORT_BED_NICS = 2, PORT_BED_PAGES = 4096, PORT_BED_BURST = 64 };

struct port_harness {
	struct mr_ctx *ctx;
	struct mr_region *region;
	struct mr_pool *pool;
	struct mr_cache *cache;
	uint8_t *base;
	struct model_wire *wire;
	struct intel *nics[PORT_BED_NICS];
	struct mr_port *ports[PORT_BED_NICS]; /* NULL: not open */
	uint64_t n_drops;                     /* of closed ports, all named */
	uint64_t n_events;
};

/*
 * NICs are "nic0" and "nic1"; with one, the test is at end 1 of the wire. The
 * context and the models use the given clock, and the models have no thread;
 * NULL: real time.
 */
void port_harness_make(struct port_harness *harness,
		       const struct intel_chip *chip0,
		       const struct intel_chip *chip1,
		       uint64_t (*clock_ns)(void *opaque));

/* Spec "vfio:nicI" and @p options. 0 or -errno. */
int port_harness_open(struct port_harness *harness, uint32_t i,
		      const char *options, struct mr_reason *why);

/* False: the link did not come up within 5 s. */
bool port_harness_wait_link(struct port_harness *harness, uint32_t i,
			    bool is_up);

/* Check the counters' invariants, then mr_port_close(). */
void port_harness_close(struct port_harness *harness, uint32_t i);

/* Close everything; false: a page is lost. Violations stay available. */
bool port_harness_end(struct port_harness *harness);

/* Whether received = delivered + drops and so on, of queue 0. */
bool port_harness_invariants_hold(struct port_harness *harness, uint32_t i);

/* A frame of the pool with these bytes, in entries of at most 2000 bytes. */
uint32_t port_harness_frame(struct port_harness *harness,
			    struct mr_frame *frames, const uint8_t *bytes,
			    uint32_t n_bytes);

/* Bytes of the frame that begins at frames[0]; -1: it is invalid. */
int32_t port_harness_bytes(const struct port_harness *harness,
			   const struct mr_frame *frames, uint8_t *bytes,
			   uint32_t room);

#endif
