/* SPDX-License-Identifier: BSD-3-Clause */
/* mr-bench reflect: sends received frames back to their sender, to measure
 * round trips. Stamps stay as they are. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/mac.h"
#include "net/relay.h"
#include "net/swap.h"
#include "support/counter.h"
#include "support/dataplane_keys.h"
#include "support/signals.h"

enum reflect_drop {
	DROP_RUNT,
	DROP_GROUP,
	DROP_NO_PAGE,
	DROP_TX_FULL,
	DROP_SHUTDOWN,
	N_DROPS,
};

static const char *const drop_names[N_DROPS] = {
	[DROP_RUNT] = "runt",         [DROP_GROUP] = "group",
	[DROP_NO_PAGE] = "no_page",   [DROP_TX_FULL] = "tx_full",
	[DROP_SHUTDOWN] = "shutdown",
};

struct reflect {
	struct relay_options options;
	enum swap_layer layer;
	bool answers_arp;
	struct dataplane plane;
	uint64_t macs[MAX_PORTS]; /* see mac.h */
	void *base;
	struct reflector *reflectors;
	json_t *document;
};

struct reflector {
	_Alignas(64) const struct reflect *reflect;
	uint64_t n_bursts, n_entries, n_arp;
	uint64_t drops[N_DROPS];
};

static const struct yaml_key keys[] = {
	YAML_NUMBER("layer", reflect, layer, SWAP_MACS, SWAP_PORTS,
		    YAML_OPTION("N", "swap MACs (2), also IPs (3), also ports "
				     "(4, default)")),
	YAML_BOOL("arp", reflect, answers_arp,
		  YAML_OPTION(NULL, "answer all ARP requests with the port's "
				    "MAC address")),
	YAML_END,
};

static void drop_frames(struct reflector *r, struct mr_worker *worker,
			const struct mr_frame *frames, uint32_t n,
			enum reflect_drop why)
{
	counter_add(&r->drops[why], mr_frame_n_frames(frames, n));
	mr_frame_free_bulk(worker->cache, frames, n);
}

/* Swap the directions of a frame of n entries; false: it was dropped. */
static bool turn_frame(struct reflector *r, struct mr_worker *worker,
		       uint32_t port, struct mr_frame *frame, uint32_t n)
{
	const struct reflect *reflect = r->reflect;
	uint64_t n_bytes, mac;
	uint8_t *bytes;

	if (mr_frame_unshare(worker->cache, frame, n) < 0) {
		drop_frames(r, worker, frame, n, DROP_NO_PAGE);
		return false;
	}
	bytes = mr_frame_data(reflect->base, frame);
	mac = mac_get(&reflect->macs[port]);
	if (reflect->answers_arp &&
	    swap_arp(bytes, frame->len, (const uint8_t *)&mac)) {
		counter_add(&r->n_arp, 1);
		return true;
	}
	n_bytes = mr_frame_n_bytes(frame, n);
	switch (swap_frame(bytes, frame->len, (uint32_t)n_bytes,
			   reflect->layer)) {
	case SWAP_DONE:
		return true;
	case SWAP_RUNT:
		drop_frames(r, worker, frame, n, DROP_RUNT);
		return false;
	default:
		drop_frames(r, worker, frame, n, DROP_GROUP);
		return false;
	}
}

static uint32_t reflect_queue(struct reflector *r, struct mr_worker *worker,
			      const struct mr_worker_rxq *rxq)
{
	struct mr_frame frames[MR_BURST_MAX];
	const uint32_t n = mr_rx_burst(rxq->rxq, worker->cache, frames,
				       r->reflect->options.plane.burst);
	uint32_t n_kept = 0, n_sent;

	if (n == 0)
		return 0;
	counter_add(&r->n_bursts, 1);
	counter_add(&r->n_entries, n);
	for (uint32_t i = 0, n_entries; i < n; i += n_entries) {
		n_entries = mr_frame_n_entries(frames + i);
		if (!turn_frame(r, worker, rxq->port_idx, frames + i,
				n_entries))
			continue;
		memmove(frames + n_kept, frames + i,
			n_entries * sizeof(frames[0]));
		n_kept += n_entries;
	}
	n_sent = mr_worker_send(worker, rxq->port_idx, frames, n_kept);
	drop_frames(r, worker, frames + n_sent, n_kept - n_sent, DROP_TX_FULL);
	return n;
}

static int reflect_run(struct mr_worker *worker, void *opaque)
{
	struct reflector *r = (struct reflector *)opaque + worker->idx;
	uint32_t n;

	do {
		n = 0;
		for (uint32_t i = 0; i < worker->n_rxqs; i++)
			n += reflect_queue(r, worker, &worker->rxqs[i]);
		n += mr_worker_serve(worker);
	} while (mr_worker_wait(worker, n));
	return 0;
}

static void drop_at_end(struct mr_worker *worker,
			const struct mr_frame *frames, uint32_t n,
			void *opaque)
{
	drop_frames((struct reflector *)opaque + worker->idx, worker, frames, n,
		    DROP_SHUTDOWN);
}

static void take_counters(struct snapshot *snapshot, void *app)
{
	const struct reflect *reflect = app;

	snapshot->about = reflect->document;
	for (uint32_t w = 0; w < snapshot->n_workers; w++) {
		const struct reflector *from = &reflect->reflectors[w];
		struct worker_snapshot *to = &snapshot->workers[w];

		snapshot_copy_counters(&to->bursts, &from->n_bursts, 1);
		snapshot_copy_counters(&to->entries, &from->n_entries, 1);
		snapshot_copy_counters(&to->counts[0], &from->n_arp, 1);
		snapshot_copy_counters(to->drops, from->drops, N_DROPS);
	}
}

static const struct worker_row worker_rows[] = { { "arp_answered",
						   INVARIANT_NONE } };

static const struct app_counters counters = {
	.program = "mr-bench reflect",
	.drop_names = drop_names,
	.n_drops = N_DROPS,
	.worker_rows = worker_rows,
	.n_worker_rows = 1,
	.take = take_counters,
};

/* Make the workers' data. Returns 0 or the exit status. */
static int open_reflectors(struct reflect *reflect, struct mr_reason *why)
{
	const struct dataplane *plane = &reflect->plane;

	reflect->base = mr_region_base(mr_pool_region(plane->pool));
	for (uint32_t p = 0; p < plane->n_ports; p++) {
		struct mr_port_info info = { .size = sizeof(info) };

		mr_port_info(plane->ports[p], &info);
		reflect->macs[p] = mac_of_port(plane->ports[p]);
		if (reflect->answers_arp && !info.has_mac)
			return fail_with(
				why, 2,
				"--arp: %s has no MAC address to answer "
				"with",
				info.name);
	}
	reflect->reflectors = aligned_alloc(
		_Alignof(struct reflector),
		plane->n_workers * sizeof(reflect->reflectors[0]));
	if (reflect->reflectors == NULL)
		return fail_with(why, 1, "no memory for %u workers",
				 plane->n_workers);
	for (uint32_t w = 0; w < plane->n_workers; w++)
		reflect->reflectors[w] =
			(struct reflector){ .reflect = reflect };
	return 0;
}

static void port_event(void *app, uint32_t port_idx, uint32_t events)
{
	struct reflect *reflect = app;

	if (reflect->answers_arp && (events & MR_PORT_EVENT_MAC) != 0)
		mac_follow(reflect->plane.ports[port_idx], "mr-bench reflect",
			   "ARP answers now use it", &reflect->macs[port_idx]);
}

static int reflect_ports(struct reflect *reflect)
{
	const struct relay_options *options = &reflect->options;
	const uint32_t all = UINT32_MAX;
	struct mr_reason why;
	struct run_config config = { .plane = &reflect->plane,
				     .counters = &counters,
				     .options = options->run,
				     .work = reflect_run,
				     .drop = drop_at_end,
				     .port_event = port_event,
				     .app = reflect };
	int status;

	config.signal_fd = signals_open(&why);
	if (config.signal_fd < 0)
		return relay_complain(options->command, 1, why.text);
	status = dataplane_open(&reflect->plane, &options->plane, &why);
	if (status == 0) {
		status = open_reflectors(reflect, &why);
		reflect->document = relay_ask(
			options,
			relay_found(options, &reflect->plane, all, all,
				    json_pack("{si sb}", "layer",
					      (int)reflect->layer, "arp",
					      reflect->answers_arp)));
		close(options->document_fd); /* nothing is written to files */
		config.workers = reflect->reflectors;
		status = status == 0 ? run(&config) :
				       relay_complain(options->command, status,
						      why.text);
		(void)dataplane_close(&reflect->plane, NULL);
	} else {
		relay_complain(options->command, status, why.text);
	}
	json_decref(reflect->document);
	free(reflect->reflectors);
	close(config.signal_fd);
	return status;
}

int reflect_main(int argc, char **argv)
{
	static const struct relay_command command = {
		.program = "mr-bench reflect",
		.usage =
			"usage: mr-bench reflect [options] PORT...\n"
			"Send received frames back through the same port, with "
			"addresses\nand ports swapped.\n",
		.keys = keys,
		.groups = DATAPLANE_WORKERS | DATAPLANE_PROMISC,
	};
	struct reflect reflect = { .layer = SWAP_PORTS };
	struct dataplane_config *plane = &reflect.options.plane;
	uint32_t sends_to[MAX_PORTS];
	struct mr_reason why;
	int first;
	int status = relay_options_main(&command, argc, argv, &reflect.options,
					&first);

	if (status >= 0)
		return status;
	if (first == argc)
		return relay_complain(&command, 2,
				      "no port; mr-bench reflect PORT...");
	if (argc - first > MAX_PORTS)
		return relay_complain(&command, 2, "more than 32 ports");
	for (uint32_t p = 0; p < MAX_PORTS; p++)
		sends_to[p] = p;
	plane->specs = (const char *const *)argv + first;
	plane->n_ports = (uint32_t)(argc - first);
	plane->sends_to = sends_to;
	if (!specs_differ(plane->specs, plane->n_ports, &why))
		return relay_complain(&command, 2, why.text);
	return reflect_ports(&reflect);
}
