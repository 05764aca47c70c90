/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared by all models of NICs: a PCI function in the test process, with a
 * config space with capabilities, BARs whose registers call functions, DMA
 * through its table of mappings, eventfds for interrupts, and one end of a
 * wire.
 *
 *     driver -> lib/pci -> backend.c -> model_*() -> model_ops of one NIC
 *
 * A model is written from the datasheet, not from our driver. Violations of the
 * datasheet by a driver are recorded as text, and tests assert that there are
 * none. struct model_faults requests faults of the device.
 *
 * Each register write and each frame that moves at its end of the wire steps
 * it, unless is_lazy; if model_start() was called, a separate thread also does,
 * for operations that take time. It has an internal lock: any thread may call
 * it.
 */
#ifndef MODEL_DEVICE_H
#define MODEL_DEVICE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "wire.h"

enum {
	MODEL_MAX_BARS = 6,
	MODEL_MAX_MAPS = 256,
	MODEL_MAX_IRQS = 64,
	MODEL_MAX_RANGES = 4,
	MODEL_CONFIG_BYTES = 4096,
};

/* Faults; zero: none. "One in N": at random; 1 is always. */
struct model_faults {
	uint32_t reset_never_ends;
	uint32_t all_ones;         /* gone: reads give ~0, writes do nothing */
	uint32_t link_down;        /* the cable is unplugged */
	uint32_t late_completions; /* steps by which completions are late */
	uint32_t wrong_completion; /* one in N: not what was requested */
	uint32_t error_bits;       /* one in N received with an error */
	uint32_t lost_irqs;        /* one in N */
	uint32_t spurious_irqs;    /* one in N steps sends one more */
	uint32_t bad_length;       /* one in N: longer than the buffer */
	uint32_t bad_id;           /* one in N */
	uint32_t bad_count;        /* one in N: the frame has no end */
	uint32_t bad_hash;         /* one in N: hash, type and tag at random */
	uint32_t dma_unmapped;     /* one in N is lost */
};

struct model;

/* One table per kind of NIC. Called with the model's lock held. */
struct model_ops {
	uint64_t (*read)(struct model *m, uint32_t bar, uint64_t offset,
			 uint32_t n_bytes);
	void (*write)(struct model *m, uint32_t bar, uint64_t offset,
		      uint32_t n_bytes, uint64_t value);
	/* Do all due work: send, receive, complete, interrupt. */
	void (*step)(struct model *m);
	/* Set registers as after power-on. The config space stays. */
	void (*reset)(struct model *m);
};

struct model_map {
	uint64_t iova, n_bytes;
	uint8_t *memory;
};

/* Usable I/O addresses, inclusive. */
struct model_range {
	uint64_t first, last;
};

/* The first member of a model. Set up by model_init(), then by its NIC. */
struct model {
	const struct model_ops *ops;
	pthread_mutex_t lock;
	uint8_t config[MODEL_CONFIG_BYTES];
	uint8_t config_writable[MODEL_CONFIG_BYTES]; /* bits */
	uint32_t last_cap;                           /* its offset, 0: none */
	uint64_t bar_bytes[MODEL_MAX_BARS];          /* 0: none */
	uint32_t n_vectors;
	bool is_lazy; /* stepped only by model_step() */

	bool is_open;
	bool was_master; /* bus master was set since the last reset */
	struct model_map maps[MODEL_MAX_MAPS];
	uint32_t n_maps, max_maps; /* fewer: like an IOMMU at its limit */
	struct model_range ranges[MODEL_MAX_RANGES];
	uint32_t n_ranges;
	int irq_fds[MODEL_MAX_IRQS];
	uint32_t n_irqs;
	int req_fd, err_fd;
	uint64_t n_irqs_sent;
	uint64_t n_bar_reads, n_bar_writes;
	uint64_t n_dma_refused; /* while bus master was clear */

	struct model_wire *wire; /* NULL: no cable */
	uint32_t end;

	struct model_faults faults;
	uint64_t random;

	uint64_t (*now)(void *arg); /* NULL: CLOCK_MONOTONIC */
	void *now_arg;
	uint64_t wake_ns; /* when it must be stepped; 0: nothing is due */
	pthread_t thread;
	pthread_cond_t wake;
	void (*stop)(struct model *m); /* its thread; NULL: none */
	bool is_stopping;

	char violations[4096];
	uint32_t n_violations;
};

/* Config space content. Capabilities are added after it. */
struct model_id {
	uint16_t vendor_id, device_id, subsystem_vendor_id, subsystem_id;
	uint32_t class_code; /* 24 bits */
	uint8_t revision;
};

void model_init(struct model *m, const struct model_ops *ops,
		const struct model_id *id);
void model_deinit(struct model *m);

/* A memory BAR of @p n_bytes, a power of two. */
void model_add_bar(struct model *m, uint32_t idx, uint64_t n_bytes);

/*
 * Add a capability: @p body is what follows its id and the pointer to the next.
 * Returns its offset.
 */
uint32_t model_add_cap(struct model *m, uint8_t id, const void *body,
		       uint32_t n_bytes);
void model_add_msix(struct model *m, uint32_t n_vectors, uint32_t bar);
void model_add_pcie(struct model *m);

/* ---- the host's side: members of backend.c's table, or called by it; the
 * device is a struct model. 0 or -errno. ---- */
int model_open(struct model *m);
void model_close(void *device);
int model_read_config(void *device, uint32_t offset, void *ret,
		      uint32_t n_bytes);
int model_write_config(void *device, uint32_t offset, const void *bytes,
		       uint32_t n_bytes);
uint64_t model_read(void *device, uint32_t bar, uint64_t offset,
		    uint32_t n_bytes);
void model_write(void *device, uint32_t bar, uint64_t offset, uint32_t n_bytes,
		 uint64_t value);
int model_map_dma(struct model *m, void *memory, uint64_t iova,
		  uint64_t n_bytes);
int model_unmap_dma(void *device, uint64_t iova, uint64_t n_bytes);
/* Or the number of vectors, if there are too few. */
int model_set_irqs(void *device, uint32_t n, const int *fds);
int model_set_events(void *device, int req_fd, int err_fd);

/* struct mr_pci_backend: for mr_ctx_add_pci_device(ctx, name, it, model). */
struct mr_pci_backend;
const struct mr_pci_backend *model_backend(void);

/* ---- the NIC's side, with the lock held ---- */

/* Memory at an I/O address. NULL and a violation unless all of it is mapped. */
void *model_dma(struct model *m, uint64_t iova, uint64_t n_bytes);
bool model_is_mapped(const struct model *m, uint64_t iova, uint64_t n_bytes);
void model_irq(struct model *m, uint32_t vector);
void model_violation(struct model *m, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Whether a fault that is requested one time in N happens now. */
bool model_fault(struct model *m, uint32_t one_in);
uint32_t model_random(struct model *m);
uint64_t model_now_ns(const struct model *m);
void model_wake_at(struct model *m, uint64_t ns);
/* The wire. False, NULL: no cable, no room, or nothing there. */
bool model_tx(struct model *m, const uint8_t *bytes, uint32_t n_bytes);
const uint8_t *model_rx_peek(struct model *m, uint32_t *ret_n_bytes);
void model_rx_pop(struct model *m);

/* ---- the test's side ---- */
void model_lock(struct model *m);
void model_unlock(struct model *m);
void model_step(struct model *m);
/* Step it, unless the test does. */
void model_poke(struct model *m);
/* A thread that steps it when something is due. It does not poll. */
int model_start(struct model *m);
void model_stop(struct model *m);
void model_set_faults(struct model *m, const struct model_faults *faults);
/* The kernel wants the device back, or saw a PCI error. */
void model_request(struct model *m);
void model_pci_error(struct model *m);
/* "" if none: the first ones, one per line. Unchanged until model_forgive() */
const char *model_violations(struct model *m);
void model_forgive(struct model *m);

#endif
