/* SPDX-License-Identifier: BSD-3-Clause */
/* The control queue: 5.1.6.5 of the specification. */
#include <string.h>

#include "virtio_core.h"

enum {
	OK = 0,
	ERR = 1,
	MAX_COMMAND_BYTES = 2048,
	HASH_TYPES = 0x3f, /* as supported_hash_types says */

	/* Classes, and their commands. */
	RX = 0,
	MAC = 1,
	MAC_TABLE_SET = 0,
	MAC_ADDR_SET = 1,
	ANNOUNCE = 3,
	MQ = 4,
	MQ_VQ_PAIRS_SET = 0,
	MQ_RSS_CONFIG = 1,
	MQ_HASH_CONFIG = 2,
	NOTF_COAL = 6,
	COAL_TX_SET = 0,
	COAL_RX_SET = 1,
	STATS = 8,
	STATS_QUERY = 0,
	STATS_GET = 1,

	/* Types of statistics that the model has. */
	RX_BASIC = 0,
	RX_CSUM = 1,
	TX_BASIC = 16,
	TX_CSUM = 17,
	MAX_RESULT_BYTES = 2048,
};

/* A command as it came, and what goes back beside the acknowledgement. */
struct command {
	uint8_t class, number;
	const uint8_t *bytes;
	uint32_t n_bytes;
	uint8_t result[MAX_RESULT_BYTES];
	uint32_t n_result;
};

/* The driver sent something that no device can take. */
static uint8_t wrong(struct vnet *v, const struct command *c, const char *why)
{
	model_violation(&v->model, "control %u.%u of %u bytes: %s", c->class,
			c->number, c->n_bytes, why);
	return ERR;
}

static uint8_t set_rx(struct vnet *v, const struct command *c)
{
	bool *const modes[] = { &v->promisc, &v->allmulti };

	if (!vnet_has(v, VNET_CTRL_RX))
		return wrong(v, c, "without the feature");
	if (c->number >= 2 || c->n_bytes != 1 || c->bytes[0] > 1)
		return wrong(v, c, "not 0 or 1");
	*modes[c->number] = c->bytes[0] != 0;
	return OK;
}

/* One table of addresses. Bytes that it takes, 0: it is cut off. */
static uint32_t table_bytes(const uint8_t *bytes, uint32_t n_bytes,
			    uint32_t *ret_n)
{
	if (n_bytes < 4)
		return 0;
	*ret_n = vnet_get32(bytes);
	return *ret_n <= (n_bytes - 4) / 6 ? 4 + 6 * *ret_n : 0;
}

static uint8_t set_mac_table(struct vnet *v, const struct command *c)
{
	uint32_t n_uni = 0, n_multi = 0, first, second;

	first = table_bytes(c->bytes, c->n_bytes, &n_uni);
	second = table_bytes(c->bytes + first, c->n_bytes - first, &n_multi);
	if (first == 0 || second == 0 || first + second != c->n_bytes)
		return wrong(v, c, "two tables, and their lengths");
	for (uint32_t i = 0; i < n_uni; i++)
		if ((c->bytes[4 + 6 * i] & 1) != 0)
			return wrong(v, c, "a multicast address comes first");
	for (uint32_t i = 0; i < n_multi; i++)
		if ((c->bytes[first + 4 + 6 * i] & 1) == 0)
			return wrong(v, c, "a unicast address comes second");
	if (n_uni + n_multi > VNET_MAX_MACS)
		return ERR;
	memcpy(v->macs, c->bytes + 4, 6 * n_uni);
	memcpy(v->macs + n_uni, c->bytes + first + 4, 6 * n_multi);
	v->n_unicast = n_uni;
	v->n_multicast = n_multi;
	return OK;
}

static uint8_t set_mac(struct vnet *v, const struct command *c)
{
	if (c->number == MAC_TABLE_SET && vnet_has(v, VNET_CTRL_RX))
		return set_mac_table(v, c);
	if (c->number != MAC_ADDR_SET || !vnet_has(v, VNET_CTRL_MAC_ADDR))
		return wrong(v, c, "without the feature");
	if (c->n_bytes != 6 || (c->bytes[0] & 1) != 0)
		return wrong(v, c, "no unicast address");
	memcpy(v->mac, c->bytes, 6);
	return OK;
}

static uint8_t set_pairs(struct vnet *v, const struct command *c)
{
	const uint16_t n = c->n_bytes == 2 ? vnet_get16(c->bytes) : 0;

	if (!vnet_has(v, VNET_MQ) || n == 0 || n > v->config.n_pairs)
		return wrong(v, c, "that many pairs");
	v->n_active_pairs = n;
	v->has_rss = false;
	return OK;
}

/* {u8 length, key[]} at the end of a command. */
static bool take_key(struct vnet_rss *rss, const uint8_t *bytes,
		     uint32_t n_bytes)
{
	if (n_bytes == 0 || bytes[0] > VNET_KEY_BYTES ||
	    n_bytes != 1u + bytes[0])
		return false;
	memset(rss->key, 0, sizeof(rss->key));
	memcpy(rss->key, bytes + 1, bytes[0]);
	return true;
}

static uint8_t set_rss(struct vnet *v, const struct command *c)
{
	struct vnet_rss rss = { 0 };
	uint32_t n, n_tx;

	if (!vnet_has(v, VNET_RSS))
		return wrong(v, c, "without the feature");
	if (c->n_bytes < 11)
		return wrong(v, c, "cut off");
	rss.types = vnet_get32(c->bytes);
	rss.mask = vnet_get16(c->bytes + 4);
	rss.unclassified = vnet_get16(c->bytes + 6);
	n = rss.mask + 1u;
	if ((n & rss.mask) != 0 || n > VNET_MAX_TABLE ||
	    c->n_bytes < 11 + 2 * n || rss.unclassified >= v->config.n_pairs ||
	    (rss.types & ~(uint32_t)HASH_TYPES) != 0)
		return wrong(v, c, "types, mask or unclassified queue");
	for (uint32_t i = 0; i < n; i++) {
		rss.table[i] = vnet_get16(c->bytes + 8 + 2 * i);
		if (rss.table[i] >= v->config.n_pairs)
			return wrong(v, c, "the table names no queue");
	}
	n_tx = vnet_get16(c->bytes + 8 + 2 * n);
	if (n_tx == 0 || n_tx > v->config.n_pairs ||
	    !take_key(&rss, c->bytes + 10 + 2 * n, c->n_bytes - 10 - 2 * n))
		return wrong(v, c, "max_tx_vq or key");
	v->rss = rss;
	v->has_rss = true;
	v->n_active_pairs = (uint16_t)n_tx;
	return OK;
}

static uint8_t set_hash(struct vnet *v, const struct command *c)
{
	struct vnet_rss rss = v->rss;

	if (!vnet_has(v, VNET_HASH_REPORT))
		return wrong(v, c, "without the feature");
	if (c->n_bytes < 13 ||
	    (vnet_get32(c->bytes) & ~(uint32_t)HASH_TYPES) != 0 ||
	    vnet_get64(c->bytes + 4) != 0 ||
	    !take_key(&rss, c->bytes + 12, c->n_bytes - 12))
		return wrong(v, c, "types, reserved or key");
	rss.types = vnet_get32(c->bytes);
	v->rss = rss;
	return OK;
}

static uint8_t set_mq(struct vnet *v, const struct command *c)
{
	switch (c->number) {
	case MQ_VQ_PAIRS_SET:
		return set_pairs(v, c);
	case MQ_RSS_CONFIG:
		return set_rss(v, c);
	case MQ_HASH_CONFIG:
		return set_hash(v, c);
	default:
		return wrong(v, c, "unknown");
	}
}

/* Kept and told, but interrupts come at once: a model has no time. */
static uint8_t set_coal(struct vnet *v, const struct command *c)
{
	if (!vnet_has(v, VNET_NOTF_COAL) || c->number > COAL_RX_SET)
		return wrong(v, c, "without the feature");
	if (c->n_bytes != 8)
		return wrong(v, c, "not two numbers");
	for (uint32_t i = c->number == COAL_TX_SET; i < 2 * v->config.n_pairs;
	     i += 2)
		v->coal[i] = (struct vnet_coal){
			.max_packets = vnet_get32(c->bytes),
			.max_usecs = vnet_get32(c->bytes + 4),
		};
	return OK;
}

static uint8_t set_announced(struct vnet *v, const struct command *c)
{
	if (!vnet_has(v, VNET_GUEST_ANNOUNCE) || c->number != 0 ||
	    c->n_bytes != 0)
		return wrong(v, c, "without the feature");
	v->wants_announcement = false;
	return OK;
}

/* Which types queue `idx` has; where the feature that they need was taken. */
static uint64_t types_of(const struct vnet *v, uint32_t idx)
{
	if (idx % 2 == 0)
		return 1u << RX_BASIC | (uint32_t)vnet_has(v, VNET_GUEST_CSUM)
						<< RX_CSUM;
	return 1u << TX_BASIC | (uint32_t)vnet_has(v, VNET_CSUM) << TX_CSUM;
}

/* One type of a queue's counters, behind its header. */
static void put_counts(struct vnet *v, struct command *c, uint16_t idx,
		       uint8_t type)
{
	const struct vnet_counts *counts = &v->counts[idx];
	const uint64_t basic[] = { counts->n_doorbells, counts->n_packets,
				   counts->n_bytes,     counts->n_irqs,
				   counts->n_drops,     0 };
	const uint64_t plain = counts->n_packets - counts->n_summed;
	const uint64_t rx_csum[] = { counts->n_summed, 0, plain, 0 };
	const uint64_t tx_csum[] = { plain, counts->n_summed };
	const uint64_t *const values = type == RX_CSUM ? rx_csum :
				       type == TX_CSUM ? tx_csum :
							 basic;
	const uint32_t n = type == RX_CSUM ? 4 : type == TX_CSUM ? 2 : 6;
	uint8_t *to = c->result + c->n_result;

	if (c->n_result + 8 + 8 * n > sizeof(c->result))
		return;
	memset(to, 0, 8);
	to[0] = type;
	to[0] ^= (uint8_t)vnet_fault(v, v->faults.bad_types);
	vnet_put16(to + 2, idx);
	vnet_put16(to + 6, (uint16_t)(8 + 8 * n));
	for (uint32_t i = 0; i < n; i++)
		vnet_put64(to + 8 + 8 * i, values[i]);
	c->n_result += 8 + 8 * n;
}

/* Replies without an end, of which the first may have none, or any size. */
static void spoil_sizes(struct vnet *v, struct command *c)
{
	for (uint32_t i = 0; i < sizeof(c->result); i += 8)
		vnet_put64(c->result + i, (uint64_t)56 << 48);
	vnet_put16(c->result + 6, (uint16_t)(model_random(&v->model) % 40 * 8));
	c->n_result = sizeof(c->result);
}

static uint8_t get_stats(struct vnet *v, struct command *c)
{
	if (!vnet_has(v, VNET_DEVICE_STATS) || c->number > STATS_GET)
		return wrong(v, c, "without the feature");
	if (c->number == STATS_QUERY) {
		if (c->n_bytes != 0)
			return wrong(v, c, "a query has no data");
		vnet_put64(c->result, 1u << RX_BASIC | 1u << RX_CSUM);
		if (!v->faults.rx_stats_only)
			vnet_put64(c->result, 1u << RX_BASIC | 1u << RX_CSUM |
						      1u << TX_BASIC |
						      1u << TX_CSUM);
		c->n_result = 8;
		return OK;
	}
	if (c->n_bytes == 0 || c->n_bytes % 16 != 0)
		return wrong(v, c, "no queues and types");
	for (uint32_t i = 0; i < c->n_bytes; i += 16) {
		const uint16_t idx = vnet_get16(c->bytes + i);
		const uint64_t types = vnet_get64(c->bytes + i + 8);

		if (idx >= 2 * v->config.n_pairs || types == 0 ||
		    (types & ~types_of(v, idx)) != 0)
			return wrong(v, c, "types that the queue has not");
		for (uint8_t type = 0; type < 32; type++)
			if (types >> type & 1)
				put_counts(v, c, idx, type);
	}
	if (vnet_fault(v, v->faults.bad_sizes))
		spoil_sizes(v, c);
	return OK;
}

static uint8_t obey(struct vnet *v, struct command *c)
{
	switch (c->class) {
	case RX:
		return set_rx(v, c);
	case MAC:
		return set_mac(v, c);
	case ANNOUNCE:
		return set_announced(v, c);
	case MQ:
		return set_mq(v, c);
	case NOTF_COAL:
		return set_coal(v, c);
	case STATS:
		return get_stats(v, c);
	default:
		return wrong(v, c, "unknown");
	}
}

/* The acknowledgement comes first, then the result, if there is room. */
static void put_answer(struct vnet *v, struct vnet_queue *q,
		       const struct command *c, uint8_t ack)
{
	const struct vnet_element *e = vnet_element(q, q->n_done);
	const uint32_t room = vnet_capacity(e);
	const uint32_t n = c->n_result < room - 1 ? c->n_result : room - 1;

	vnet_scatter(e, 0, &ack, 1);
	vnet_scatter(e, 1, c->result, n);
	vnet_use(v, q, n + 1);
}

/* False: it is not answered. */
static bool answer(struct vnet *v, struct vnet_queue *q)
{
	const struct vnet_element *e = vnet_element(q, q->n_done);
	const uint32_t room = vnet_capacity(e);
	uint8_t bytes[MAX_COMMAND_BYTES];
	const uint32_t n = vnet_gather(e, bytes, sizeof(bytes));
	struct command c = { .n_result = 0 };
	uint8_t ack;

	if (n == UINT32_MAX || n < 2 || room < 1) {
		vnet_give_up(v, q, "no command, or no room for its answer");
		return false;
	}
	c.class = bytes[0];
	c.number = bytes[1];
	if (v->faults.query_hangs && c.class == STATS &&
	    c.number == STATS_QUERY) {
		v->stats.n_faults++;
		if (v->faults.behind_query != NULL)
			v->faults = *v->faults.behind_query;
		return false;
	}
	v->stats.n_commands++;
	c.bytes = bytes + 2;
	c.n_bytes = n - 2;
	if (v->faults.ctrl_refuses) {
		v->stats.n_faults++;
		ack = ERR;
	} else {
		ack = obey(v, &c);
	}
	if (v->faults.no_results) {
		v->stats.n_faults++;
		c.n_result = 0;
	}
	put_answer(v, q, &c, ack);
	return true;
}

void vnet_step_ctrl(struct vnet *v, struct vnet_queue *q)
{
	if (!vnet_queue_map(v, q))
		return;
	q->is_kicked = false;
	do
		vnet_fetch(v, q);
	while (!vnet_want_kicks(v, q, true) && vnet_is_running(v) &&
	       q->n_taken - q->n_told < q->size);
	if (v->faults.ctrl_hangs) {
		v->stats.n_faults += q->n_taken > q->n_done;
		return;
	}
	while (q->n_done < q->n_taken && vnet_is_running(v) && answer(v, q))
		;
	vnet_tell(v, q);
}
