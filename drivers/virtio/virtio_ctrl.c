/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control queue: one command at a time. Callers wait for it, except
 * mr_port_poll(), which a data-path thread may call.
 *
 *     descriptor 1: class, command   2: what goes with it
 *                3: its answer       4: what it says besides
 *
 * Each part has its own descriptor: to QEMU, a header that shares one is
 * missing, and it stops the machine.
 *
 * Source: virtio 1.2, 5.1.6.5 "Control Virtqueue".
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "virtio.h"

enum {
	/* Offsets of the parts. */
	HEADER_AT = 0,
	ANSWER_AT = 64,
	RESULT_AT = 128,
	DATA_AT = RESULT_AT + VIRTIO_MAX_RESULT_BYTES,
	MEMORY_BYTES = 4096,
	MAX_DATA_BYTES = MEMORY_BYTES - DATA_AT,

	MAX_ENTRIES = 64,
	TIMEOUT_NS = 2 * 1000 * 1000 * 1000u,
	NAP_NS = 20 * 1000,
	TIMEOUT_TICKS = TIMEOUT_NS / VIRTIO_TICK_NS,

	MAX_MACS = (MAX_DATA_BYTES - 2 * 4) / 6,
};

int mri_virtio_ctrl_open(struct virtio_port *port, struct mr_reason *reason)
{
	struct virtio_ctrl *ctrl = &port->ctrl;
	/* 5.1.2: after all possible pairs, not just those in use. */
	const uint32_t n_pairs = port->features & (virtio_bit(VIRTIO_F_MQ) |
						   virtio_bit(VIRTIO_F_RSS)) ?
					 port->facts.max_pairs :
					 1;
	uint32_t n = port->transport->max_entries(port, 2 * n_pairs);
	int err;

	if (n < 4)
		return mr_fail(reason, -EIO,
			       "%s: offers a control queue but has none",
			       port->base.info->name);
	n = 1u << (31 - __builtin_clz(n));
	err = mri_virtio_vq_alloc(port, &ctrl->vq, 2 * n_pairs,
				  n < MAX_ENTRIES ? n : MAX_ENTRIES, reason);
	if (err == 0)
		err = port->transport->alloc_dma(port, MEMORY_BYTES,
						 &ctrl->memory, reason);
	return err;
}

void mri_virtio_ctrl_close(struct virtio_port *port)
{
	port->transport->free_dma(port, &port->ctrl.memory);
	port->transport->free_dma(port, &port->ctrl.vq.dma);
}

/* Write a command and room for the answer. Returns how many descriptors. */
static uint32_t put_all(struct virtio_ctrl *ctrl, uint32_t n_bytes,
			uint32_t n_result_bytes)
{
	const struct {
		uint32_t at, n_bytes, flags;
	} parts[] = {
		{ HEADER_AT, 2, 0 },
		{ DATA_AT, n_bytes, 0 },
		{ ANSWER_AT, 1, VIRTIO_DESC_WRITE },
		{ RESULT_AT, n_result_bytes, VIRTIO_DESC_WRITE },
	};
	struct virtio_vq *vq = &ctrl->vq;
	const uint32_t head = ctrl->n_put;
	const uint32_t n = 2 + (n_bytes > 0) + (n_result_bytes > 0);
	uint32_t left = n;

	/* The last part first: the device starts at the first one. */
	for (uint32_t i = sizeof(parts) / sizeof(parts[0]); i-- > 0;) {
		if (parts[i].n_bytes == 0)
			continue;
		left--;
		virtio_write_desc(
			vq, head + left, ctrl->memory.iova + parts[i].at,
			parts[i].n_bytes, head & vq->mask,
			parts[i].flags | (left + 1 < n ? VIRTIO_DESC_NEXT : 0),
			vq->is_packed);
	}
	if (vq->is_packed) {
		virtio_packed_publish(vq, n);
	} else {
		vq->avail->ring[vq->n_avail & vq->mask] =
			(uint16_t)(head & vq->mask);
		virtio_split_publish(vq, 1);
	}
	ctrl->n_put += n;
	return n;
}

static bool is_answered(const struct virtio_vq *vq)
{
	if (vq->is_packed)
		return virtio_packed_is_used(
			vq, vq->n_used, virtio_packed_load(vq, vq->n_used));
	return virtio_split_n_ready(vq) > 0;
}

/* Send a command to the device. */
static void ask(struct virtio_port *port, uint32_t command, const void *data,
		uint32_t n_bytes, uint32_t n_result_bytes)
{
	struct virtio_ctrl *ctrl = &port->ctrl;
	uint8_t *memory = ctrl->memory.memory;

	memory[HEADER_AT] = (uint8_t)(command >> 8);
	memory[HEADER_AT + 1] = (uint8_t)command;
	memory[ANSWER_AT] = UINT8_MAX;
	memset(memory + RESULT_AT, 0, n_result_bytes);
	if (n_bytes > 0)
		memcpy(memory + DATA_AT, data, n_bytes);
	ctrl->n_asked = put_all(ctrl, n_bytes, n_result_bytes);
	ctrl->until_ns = mr_ctx_now_ns(port->base.ctx) + TIMEOUT_NS;
	ctrl->until_tick = port->n_ticks + TIMEOUT_TICKS;
}

/* Read the answer: 0, or -EIO; -EAGAIN: not yet. */
static int look(struct virtio_ctrl *ctrl)
{
	struct virtio_vq *vq = &ctrl->vq;
	const uint8_t *answer = (uint8_t *)ctrl->memory.memory + ANSWER_AT;

	if (!is_answered(vq))
		return -EAGAIN;
	vq->n_used =
		(uint16_t)(vq->n_used + (vq->is_packed ? ctrl->n_asked : 1));
	ctrl->n_asked = 0;
	return __atomic_load_n(answer, __ATOMIC_ACQUIRE) == VIRTIO_CTRL_OK ?
		       0 :
		       -EIO;
}

/* 0, or the reason to stop waiting. */
static int give_up(const struct virtio_port *port, uint32_t n_naps)
{
	const int err = port->transport->check(port);

	if (err < 0)
		return err;
	if (mr_ctx_now_ns(port->base.ctx) >= port->ctrl.until_ns ||
	    n_naps > TIMEOUT_NS / NAP_NS)
		return -EIO; /* even if the clock stands still */
	return 0;
}

static int wait_for_answer(struct virtio_port *port)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };
	struct virtio_ctrl *ctrl = &port->ctrl;
	uint32_t n_naps = 0;
	int err;

	while ((err = look(ctrl)) == -EAGAIN) {
		err = give_up(port, ++n_naps);
		if (err < 0) {
			/* A late answer may be taken for the next command's. */
			ctrl->is_stuck = true;
			return err;
		}
		nanosleep(&nap, NULL);
	}
	return err;
}

int mri_virtio_ctrl_ask(struct virtio_port *port, uint32_t command,
			const void *data, uint32_t n_bytes, void *ret,
			uint32_t n_ret_bytes)
{
	struct virtio_ctrl *ctrl = &port->ctrl;
	int err;

	if (__atomic_load_n(&port->is_gone, __ATOMIC_RELAXED))
		return -ENODEV;
	/* An acknowledgement may be in progress. */
	if (mri_virtio_ctrl_waits(ctrl))
		(void)wait_for_answer(port);
	if (ctrl->is_stuck)
		return -EIO;
	ask(port, command, data, n_bytes, n_ret_bytes);
	err = wait_for_answer(port);
	if (err == 0 && n_ret_bytes > 0)
		memcpy(ret, (uint8_t *)ctrl->memory.memory + RESULT_AT,
		       n_ret_bytes);
	return err;
}

void mri_virtio_ctrl_service(struct virtio_port *port)
{
	struct virtio_ctrl *ctrl = &port->ctrl;

	if (ctrl->n_asked > 0 && look(ctrl) == -EAGAIN &&
	    port->n_ticks >= ctrl->until_tick)
		ctrl->is_stuck = true;
	if (!ctrl->owes_ack || ctrl->n_asked > 0 || ctrl->is_stuck)
		return;
	ctrl->owes_ack = false;
	ask(port, VIRTIO_CTRL_ANNOUNCE_ACK, NULL, 0, 0);
}

bool mri_virtio_ctrl_waits(const struct virtio_ctrl *ctrl)
{
	return ctrl->n_asked > 0 && !ctrl->is_stuck;
}

/* Send a command that needs a feature; what is for the error message. */
static int command(struct virtio_port *port, uint32_t feature, uint32_t number,
		   const void *data, uint32_t n_bytes, const char *what,
		   struct mr_reason *reason)
{
	int err;

	if (!virtio_has(port, feature))
		return mr_fail(reason, -ENOTSUP,
			       "%s: the device has no command to %s",
			       port->base.info->name, what);
	err = mri_virtio_ctrl_ask(port, number, data, n_bytes, NULL, 0);
	if (err < 0)
		return mr_fail(
			reason, err, "%s: cannot %s: %s", port->base.info->name,
			what,
			err == -ENODEV ?
				"the device is gone" :
				"the device refuses, or does not respond");
	return 0;
}

int mri_virtio_set_promisc(struct mr_port *base, bool on,
			   struct mr_reason *reason)
{
	const uint8_t data = on;

	return command((struct virtio_port *)base, VIRTIO_F_CTRL_RX,
		       VIRTIO_CTRL_PROMISC, &data, 1, "set promiscuous mode",
		       reason);
}

int mri_virtio_set_allmulti(struct mr_port *base, bool on,
			    struct mr_reason *reason)
{
	const uint8_t data = on;

	return command((struct virtio_port *)base, VIRTIO_F_CTRL_RX,
		       VIRTIO_CTRL_ALLMULTI, &data, 1,
		       "set reception of all multicast", reason);
}

int mri_virtio_set_mac(struct mr_port *base, const uint8_t mac[6],
		       struct mr_reason *reason)
{
	return command((struct virtio_port *)base, VIRTIO_F_CTRL_MAC_ADDR,
		       VIRTIO_CTRL_MAC_ADDR, mac, 6, "set its MAC address",
		       reason);
}

/* Append a table of the addresses that are, or are not, multicast. */
static uint32_t put_macs(uint8_t *data, uint32_t at, const uint8_t (*macs)[6],
			 uint32_t n, bool is_group)
{
	uint32_t n_put = 0, end = at + 4;

	for (uint32_t i = 0; i < n; i++) {
		if ((macs[i][0] & 1) != is_group)
			continue;
		memcpy(data + end, macs[i], 6);
		end += 6;
		n_put++;
	}
	memcpy(data + at, &n_put, sizeof(n_put));
	return end;
}

int mri_virtio_set_mac_filter(struct mr_port *base, const uint8_t (*macs)[6],
			      uint32_t n, struct mr_reason *reason)
{
	uint8_t data[MAX_DATA_BYTES];
	uint32_t n_bytes;

	if (n > MAX_MACS)
		return mr_fail(reason, -ENOSPC,
			       "%s: a filter of %u addresses; at most %d",
			       base->info->name, n, MAX_MACS);
	n_bytes = put_macs(data, 0, macs, n, false);
	n_bytes = put_macs(data, n_bytes, macs, n, true);
	return command((struct virtio_port *)base, VIRTIO_F_CTRL_RX,
		       VIRTIO_CTRL_MAC_TABLE, data, n_bytes,
		       "set its address filter", reason);
}

static void put16(uint8_t *data, uint32_t *at, uint32_t value)
{
	const uint16_t value16 = (uint16_t)value;

	memcpy(data + *at, &value16, sizeof(value16));
	*at += sizeof(value16);
}

static void put_key(uint8_t *data, uint32_t *at, const struct virtio_rss *rss)
{
	data[(*at)++] = VIRTIO_KEY_BYTES;
	memcpy(data + *at, rss->key, VIRTIO_KEY_BYTES);
	*at += VIRTIO_KEY_BYTES;
}

/* Used entries of its table: a power of two. */
static uint32_t n_table_entries(const struct virtio_port *port)
{
	uint32_t n = VIRTIO_TABLE_ENTRIES;

	while (n > port->facts.max_table_entries)
		n /= 2;
	return n;
}

bool mri_virtio_has_rss_enough(const struct virtio_port *port)
{
	return n_table_entries(port) >= port->options.n_queues &&
	       port->facts.max_key_bytes >= VIRTIO_KEY_BYTES;
}

static uint32_t hash_types(uint32_t fields)
{
	const uint32_t addrs = VIRTIO_HASH_IPV4 | VIRTIO_HASH_IPV6;

	return fields == MR_RSS_FIELDS_ADDRS ?
		       addrs :
		       addrs | VIRTIO_HASH_TCPV4 | VIRTIO_HASH_UDPV4 |
			       VIRTIO_HASH_TCPV6 | VIRTIO_HASH_UDPV6;
}

static void fill_rss(const struct virtio_port *port,
		     const struct mr_rss_config *c, struct virtio_rss *rss)
{
	if (!(c->keep & MR_RSS_KEEP_TABLE))
		for (uint32_t i = 0; i < VIRTIO_TABLE_ENTRIES; i++)
			rss->table[i] = (uint16_t)mr_rss_queue(
				c, i, port->options.n_queues);
	if (!(c->keep & MR_RSS_KEEP_KEY))
		for (uint32_t i = 0; i < VIRTIO_KEY_BYTES; i++)
			rss->key[i] = mr_rss_key_byte(c, i);
	if (c->fields != MR_RSS_FIELDS_KEEP)
		rss->types = hash_types(c->fields) & port->facts.hash_types;
}

static int send_rss(struct virtio_port *port, const struct virtio_rss *rss,
		    struct mr_reason *reason)
{
	const uint32_t n_queues = port->options.n_queues;
	const uint32_t n_entries = n_table_entries(port);
	uint8_t data[4 + 2 + 2 + 2 * VIRTIO_TABLE_ENTRIES + 2 + 1 +
		     VIRTIO_KEY_BYTES];
	uint32_t at = sizeof(rss->types);

	if (!mri_virtio_has_rss_enough(port))
		return mr_fail(reason, -ENOTSUP,
			       "%s: its RSS table of %u entries and key of %u "
			       "bytes are too small for %u queues; with "
			       "rss=off the device chooses queues",
			       port->base.info->name,
			       port->facts.max_table_entries,
			       port->facts.max_key_bytes, n_queues);
	memcpy(data, &rss->types, sizeof(rss->types));
	put16(data, &at, n_entries - 1);
	put16(data, &at, 0); /* unhashed frames go to the first */
	for (uint32_t i = 0; i < n_entries; i++)
		put16(data, &at, rss->table[i]);
	put16(data, &at, n_queues);
	put_key(data, &at, rss);
	return command(port, VIRTIO_F_RSS, VIRTIO_CTRL_MQ_RSS, data, at,
		       "distribute frames over its queues", reason);
}

static int send_hash(struct virtio_port *port, const struct virtio_rss *rss,
		     struct mr_reason *reason)
{
	uint8_t data[4 + 8 + 1 + VIRTIO_KEY_BYTES] = { 0 };
	uint32_t at = 4 + 8;

	memcpy(data, &rss->types, sizeof(rss->types));
	put_key(data, &at, rss);
	return command(port, VIRTIO_F_HASH_REPORT, VIRTIO_CTRL_MQ_HASH, data,
		       at, "report hashes", reason);
}

int mri_virtio_set_rss(struct mr_port *base, const struct mr_rss_config *config,
		       struct mr_reason *reason)
{
	struct virtio_port *port = (struct virtio_port *)base;
	const uint32_t n_entries = n_table_entries(port);
	struct virtio_rss rss = port->rss;
	int err;

	if (!virtio_has(port, VIRTIO_F_RSS))
		return mr_fail(
			reason, -ENOTSUP,
			"%s: it has no RSS, or was opened with one queue "
			"or rss=off; rss=on requires it",
			base->info->name);
	if (config->key != NULL && config->n_key_bytes != VIRTIO_KEY_BYTES)
		return mr_fail(reason, -EINVAL,
			       "%s: a key of %u bytes: the device's has %d",
			       base->info->name, config->n_key_bytes,
			       VIRTIO_KEY_BYTES);
	if (config->n_entries > n_entries)
		return mr_fail(reason, -EINVAL,
			       "%s: an RSS table of %u entries: the device's "
			       "has %u",
			       base->info->name, config->n_entries, n_entries);
	if (config->fields != MR_RSS_FIELDS_KEEP &&
	    hash_types(config->fields) & ~port->facts.hash_types)
		return mr_fail(reason, -ENOTSUP,
			       "%s: the device does not hash these fields of "
			       "TCP and UDP over IPv4 and IPv6",
			       base->info->name);
	fill_rss(port, config, &rss);
	err = send_rss(port, &rss, reason);
	if (err == 0)
		port->rss = rss;
	return err;
}

static int set_queues(struct virtio_port *port, struct mr_reason *reason)
{
	const struct mr_rss_config config = { .fields = MR_RSS_FIELDS_PORTS };
	const uint16_t n = (uint16_t)port->options.n_queues;
	int err = 0;

	fill_rss(port, &config, &port->rss);
	if (virtio_has(port, VIRTIO_F_RSS))
		return send_rss(port, &port->rss, reason);
	if (virtio_has(port, VIRTIO_F_HASH_REPORT))
		err = send_hash(port, &port->rss, reason);
	if (err == 0 && n > 1)
		err = command(port, VIRTIO_F_MQ, VIRTIO_CTRL_MQ_PAIRS, &n,
			      sizeof(n), "use several queues", reason);
	return err;
}

/*
 * "Notifications Coalescing": both limit how long an interrupt waits, and 0 or
 * 1 of either disables it; so the default number of frames is the whole ring.
 */
static int set_coalescing(struct virtio_port *port, struct mr_reason *reason)
{
	const struct virtio_options *o = &port->options;
	const uint32_t rx[] = { o->rx_frames != 0 ? o->rx_frames :
						    port->rxqs[0].vq.n_entries,
				o->rx_usecs };
	const uint32_t tx[] = { o->tx_frames != 0 ? o->tx_frames :
						    port->txqs[0].vq.n_entries,
				o->tx_usecs };
	int err = 0;

	if (o->rx_usecs != 0)
		err = command(port, VIRTIO_F_NOTF_COAL, VIRTIO_CTRL_COAL_RX, rx,
			      sizeof(rx), "coalesce rx interrupts", reason);
	if (err == 0 && o->tx_usecs != 0)
		err = command(port, VIRTIO_F_NOTF_COAL, VIRTIO_CTRL_COAL_TX, tx,
			      sizeof(tx), "coalesce tx interrupts", reason);
	return err;
}

int mri_virtio_ctrl_setup(struct virtio_port *port, struct mr_reason *reason)
{
	int err = set_queues(port, reason);

	if (err == 0)
		err = set_coalescing(port, reason);
	/* A device may be promiscuous until told otherwise. */
	if (err == 0 &&
	    (virtio_has(port, VIRTIO_F_CTRL_RX) || port->options.promisc))
		err = mri_virtio_set_promisc(&port->base, port->options.promisc,
					     reason);
	return err;
}
