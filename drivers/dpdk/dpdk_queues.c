/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which queue of the device a frame goes to: RSS, and steering by rte_flow.
 *
 * The device may outlive the port, so its state before the first change is
 * saved, and restored at close.
 *
 * Source: DPDK 22.11, rte_ethdev.h; Programmer's Guide, "Generic flow API".
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include <rte_flow.h>

#include "dpdk.h"

enum { KEY_BYTES = 40 }; /* for devices that do not report a length */

/* Key, fields and table of a device. */
struct dpdk_rss {
	struct rte_eth_rss_conf conf; /* its key is the next member */
	uint8_t key[MR_RSS_KEY_MAX];
	uint16_t n_entries; /* 0: no table */
	struct rte_eth_rss_reta_entry64 groups[];
};

struct dpdk_steering {
	struct dpdk_steering *next;
	struct rte_flow *flow;
	uint32_t id;
};

/* A steering rule in DPDK's form. */
struct request {
	struct rte_flow_attr attr;
	struct rte_flow_item_eth eth, eth_mask;
	struct rte_flow_item_ipv4 ipv4, ipv4_mask;
	struct rte_flow_item_ipv6 ipv6, ipv6_mask;
	struct rte_flow_item_udp udp, udp_mask;
	struct rte_flow_item_tcp tcp, tcp_mask;
	struct rte_flow_action_queue queue;
	struct rte_flow_item pattern[4];
	struct rte_flow_action actions[2];
};

static uint32_t key_bytes(const struct dpdk_port *port)
{
	const uint32_t n = port->info.hash_key_size;

	return n == 0 ? KEY_BYTES : RTE_MIN(n, (uint32_t)MR_RSS_KEY_MAX);
}

static size_t rss_bytes(uint32_t n_entries)
{
	const uint32_t n_groups = (n_entries + RTE_ETH_RETA_GROUP_SIZE - 1) /
				  RTE_ETH_RETA_GROUP_SIZE;

	return sizeof(struct dpdk_rss) +
	       n_groups * sizeof(struct rte_eth_rss_reta_entry64);
}

static uint16_t *entry_of(struct dpdk_rss *rss, uint32_t i)
{
	return &rss->groups[i / RTE_ETH_RETA_GROUP_SIZE]
			.reta[i % RTE_ETH_RETA_GROUP_SIZE];
}

/* The device's current state; the caller frees it. */
static int read_rss(const struct dpdk_port *port, struct dpdk_rss **ret_rss)
{
	const uint16_t n = port->info.reta_size;
	struct dpdk_rss *rss = mr_alloc(port->base->ctx, 0, rss_bytes(n));
	int err;

	if (rss == NULL)
		return -ENOMEM;
	*ret_rss = rss;
	rss->n_entries = n;
	rss->conf.rss_key = rss->key;
	rss->conf.rss_key_len = (uint8_t)key_bytes(port);
	for (uint32_t i = 0; i < n; i += RTE_ETH_RETA_GROUP_SIZE)
		rss->groups[i / RTE_ETH_RETA_GROUP_SIZE].mask =
			n - i < RTE_ETH_RETA_GROUP_SIZE ?
				(UINT64_C(1) << (n - i)) - 1 :
				UINT64_MAX;
	err = rte_eth_dev_rss_hash_conf_get(port->port_id, &rss->conf);
	if (err == 0 && n > 0)
		err = rte_eth_dev_rss_reta_query(port->port_id, rss->groups, n);
	if (err < 0)
		mr_free(port->base->ctx, rss);
	return err;
}

static int write_rss(const struct dpdk_port *port, struct dpdk_rss *rss)
{
	int err;

	rss->conf.rss_key = rss->key;
	rss->conf.rss_key_len = (uint8_t)key_bytes(port);
	err = rte_eth_dev_rss_hash_update(port->port_id, &rss->conf);
	if (err == 0 && rss->n_entries > 0)
		err = rte_eth_dev_rss_reta_update(port->port_id, rss->groups,
						  rss->n_entries);
	return err;
}

/* Refuse a config that requests what this device lacks. */
static int check_rss(const struct dpdk_port *port,
		     const struct mr_rss_config *c, struct mr_reason *reason)
{
	const char *const name = port->base->info->name;
	const uint16_t n_entries = port->info.reta_size;
	static const uint64_t needed[] = {
		[MR_RSS_FIELDS_KEEP] = UINT64_MAX,
		[MR_RSS_FIELDS_ADDRS] = RTE_ETH_RSS_IP,
		[MR_RSS_FIELDS_PORTS] = RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP,
	};

	if (port->n_queues == 1 || dpdk_rss_kinds(port) == 0)
		return mr_fail(reason, -ENOTSUP, "%s: %s", name,
			       port->n_queues == 1 ?
				       "with one queue, it has no RSS" :
				       "the device has no RSS");
	if ((dpdk_rss_kinds(port) & needed[c->fields]) == 0)
		return mr_fail(reason, -ENOTSUP,
			       "%s: the device does not hash these fields",
			       name);
	if (port->info.hash_key_size > MR_RSS_KEY_MAX)
		return mr_fail(reason, -ENOTSUP,
			       "%s: the device's key of %u bytes is longer "
			       "than %d",
			       name, port->info.hash_key_size, MR_RSS_KEY_MAX);
	if (c->key != NULL && c->n_key_bytes != key_bytes(port))
		return mr_fail(reason, -EINVAL,
			       "%s: a key of %u bytes: the device's has %u",
			       name, c->n_key_bytes, key_bytes(port));
	if (c->keep & MR_RSS_KEEP_TABLE)
		return 0;
	if (n_entries == 0)
		return mr_fail(reason, -ENOTSUP,
			       "%s: the device (driver %s) has no RSS table to "
			       "set",
			       name, port->info.driver_name);
	if (c->n_entries > n_entries)
		return mr_fail(reason, -EINVAL,
			       "%s: an RSS table of %u entries: the device's "
			       "has %u",
			       name, c->n_entries, n_entries);
	return 0;
}

static void fill_rss(const struct dpdk_port *port,
		     const struct mr_rss_config *c, struct dpdk_rss *rss)
{
	const uint64_t addrs = dpdk_rss_kinds(port) & RTE_ETH_RSS_IP;

	if (!(c->keep & MR_RSS_KEEP_KEY))
		for (uint32_t i = 0; i < key_bytes(port); i++)
			rss->key[i] = mr_rss_key_byte(c, i);
	if (!(c->keep & MR_RSS_KEEP_TABLE))
		for (uint32_t i = 0; i < rss->n_entries; i++)
			*entry_of(rss, i) =
				(uint16_t)mr_rss_queue(c, i, port->n_queues);
	if (c->fields == MR_RSS_FIELDS_ADDRS)
		rss->conf.rss_hf = addrs;
	else if (c->fields == MR_RSS_FIELDS_PORTS)
		rss->conf.rss_hf = dpdk_rss_kinds(port);
}

static int refuse_change(const struct dpdk_port *port, int err,
			 const char *what, const char *why,
			 struct mr_reason *reason)
{
	if (err == -ENOSYS)
		err = -ENOTSUP;
	else if (err == -EEXIST)
		err = -EBUSY;
	else if (err != -ENOTSUP && err != -ENODEV && err != -EPERM &&
		 err != -EINVAL && err != -ENOSPC && err != -ENOMEM)
		err = -EIO;
	return mr_fail(reason, err, "%s: the device (driver %s) %s: %s",
		       port->base->info->name, port->info.driver_name, what,
		       why);
}

static int set_rss(struct dpdk_port *port, const struct mr_rss_config *config,
		   struct mr_reason *reason)
{
	const char *const what = "does not change its RSS";
	const size_t n_bytes = rss_bytes(port->info.reta_size);
	struct mr_ctx *ctx = port->base->ctx;
	struct dpdk_rss *before, *next;
	int err = check_rss(port, config, reason);

	if (err < 0)
		return err;
	mri_dpdk_ask(false);
	err = read_rss(port, &before);
	if (err < 0)
		return refuse_change(port, err, what, mri_dpdk_why(-err),
				     reason);
	next = mr_alloc(ctx, 0, n_bytes);
	if (next == NULL) {
		mr_free(ctx, before);
		return refuse_change(port, -ENOMEM, what, mri_dpdk_why(ENOMEM),
				     reason);
	}
	memcpy(next, before, n_bytes);
	fill_rss(port, config, next);
	err = write_rss(port, next);
	mr_free(ctx, next);
	if (err < 0) {
		(void)refuse_change(port, err, what, mri_dpdk_why(-err),
				    reason);
		(void)write_rss(port, before);
	} else if (port->first_rss == NULL) {
		port->first_rss = before;
		return 0;
	}
	mr_free(ctx, before);
	return err;
}

int mri_dpdk_set_rss(struct mr_port *base, const struct mr_rss_config *config,
		     struct mr_reason *reason)
{
	int err;

	mri_dpdk_enter(base->ctx);
	err = set_rss(dpdk_port_of(base), config, reason);
	mri_dpdk_leave();
	return err;
}

/* ---- steering ---- */

static struct rte_flow_item *add_item(struct rte_flow_item *item,
				      enum rte_flow_item_type type,
				      const void *spec, const void *mask)
{
	*item = (struct rte_flow_item){ .type = type,
					.spec = spec,
					.mask = mask };
	return item + 1;
}

static void fill_eth(const struct mr_steer_rule *rule, struct request *r)
{
	static const uint8_t any[6];

	r->eth.hdr.ether_type = htons(rule->ethertype);
	r->eth_mask.hdr.ether_type = rule->ethertype != 0 ? UINT16_MAX : 0;
	memcpy(r->eth.hdr.dst_addr.addr_bytes, rule->dst_mac, 6);
	if (memcmp(rule->dst_mac, any, 6) != 0)
		memset(r->eth_mask.hdr.dst_addr.addr_bytes, 0xff, 6);
	(void)add_item(r->pattern, RTE_FLOW_ITEM_TYPE_ETH, &r->eth,
		       &r->eth_mask);
}

static struct rte_flow_item *add_addrs(struct rte_flow_item *item,
				       const struct mr_steer_rule *rule,
				       struct request *r)
{
	if (rule->is_ipv6) {
		memcpy(&r->ipv6.hdr.src_addr, rule->src, 16);
		memcpy(&r->ipv6.hdr.dst_addr, rule->dst, 16);
		memcpy(&r->ipv6_mask.hdr.src_addr, rule->src_mask, 16);
		memcpy(&r->ipv6_mask.hdr.dst_addr, rule->dst_mask, 16);
		return add_item(item, RTE_FLOW_ITEM_TYPE_IPV6, &r->ipv6,
				&r->ipv6_mask);
	}
	memcpy(&r->ipv4.hdr.src_addr, rule->src, 4);
	memcpy(&r->ipv4.hdr.dst_addr, rule->dst, 4);
	memcpy(&r->ipv4_mask.hdr.src_addr, rule->src_mask, 4);
	memcpy(&r->ipv4_mask.hdr.dst_addr, rule->dst_mask, 4);
	return add_item(item, RTE_FLOW_ITEM_TYPE_IPV4, &r->ipv4, &r->ipv4_mask);
}

static void add_ports(struct rte_flow_item *item,
		      const struct mr_steer_rule *rule, struct request *r)
{
	if (rule->protocol == IPPROTO_TCP) {
		r->tcp.hdr.src_port = htons(rule->src_port);
		r->tcp.hdr.dst_port = htons(rule->dst_port);
		r->tcp_mask.hdr.src_port = htons(rule->src_port_mask);
		r->tcp_mask.hdr.dst_port = htons(rule->dst_port_mask);
		(void)add_item(item, RTE_FLOW_ITEM_TYPE_TCP, &r->tcp,
			       &r->tcp_mask);
		return;
	}
	r->udp.hdr.src_port = htons(rule->src_port);
	r->udp.hdr.dst_port = htons(rule->dst_port);
	r->udp_mask.hdr.src_port = htons(rule->src_port_mask);
	r->udp_mask.hdr.dst_port = htons(rule->dst_port_mask);
	(void)add_item(item, RTE_FLOW_ITEM_TYPE_UDP, &r->udp, &r->udp_mask);
}

static void fill_request(const struct mr_steer_rule *rule, struct request *r)
{
	*r = (struct request){
		.attr = { .ingress = 1 },
		.queue = { (uint16_t)rule->queue },
		.actions = { { RTE_FLOW_ACTION_TYPE_QUEUE, &r->queue } },
	};
	if (rule->protocol == 0)
		fill_eth(rule, r);
	else
		add_ports(add_addrs(add_item(r->pattern, RTE_FLOW_ITEM_TYPE_ETH,
					     NULL, NULL),
				    rule, r),
			  rule, r);
}

static int add_steering(struct dpdk_port *port,
			const struct mr_steer_rule *rule, uint32_t *ret_id,
			struct mr_reason *reason)
{
	struct mr_ctx *ctx = port->base->ctx;
	struct dpdk_steering *steering = mr_alloc(ctx, 0, sizeof(*steering));
	struct rte_flow_error error = { 0 };
	struct request r;

	if (steering == NULL)
		return mr_fail(reason, -ENOMEM, "%s: no memory for a rule",
			       port->base->info->name);
	fill_request(rule, &r);
	mri_dpdk_ask(false);
	steering->flow = rte_flow_create(port->port_id, &r.attr, r.pattern,
					 r.actions, &error);
	if (steering->flow == NULL) {
		mr_free(ctx, steering);
		return refuse_change(port, -rte_errno, "refuses the rule",
				     error.message != NULL ?
					     error.message :
					     mri_dpdk_why(rte_errno),
				     reason);
	}
	steering->id = port->next_steering_id++;
	steering->next = port->steerings;
	port->steerings = steering;
	*ret_id = steering->id;
	return 0;
}

int mri_dpdk_steer(struct mr_port *base, const struct mr_steer_rule *rule,
		   uint32_t *ret_id, struct mr_reason *reason)
{
	int err;

	mri_dpdk_enter(base->ctx);
	err = add_steering(dpdk_port_of(base), rule, ret_id, reason);
	mri_dpdk_leave();
	return err;
}

static int remove_steering(struct dpdk_port *port, struct dpdk_steering **at,
			   struct mr_reason *reason)
{
	struct dpdk_steering *steering = *at;
	struct rte_flow_error error = { 0 };
	const int err = rte_flow_destroy(port->port_id, steering->flow, &error);

	if (err < 0)
		return refuse_change(port, err, "keeps the rule",
				     error.message != NULL ? error.message :
							     mri_dpdk_why(-err),
				     reason);
	*at = steering->next;
	mr_free(port->base->ctx, steering);
	return 0;
}

int mri_dpdk_unsteer(struct mr_port *base, uint32_t id,
		     struct mr_reason *reason)
{
	struct dpdk_port *port = dpdk_port_of(base);
	struct dpdk_steering **at = &port->steerings;
	int err;

	mri_dpdk_enter(base->ctx);
	while (*at != NULL && (*at)->id != id)
		at = &(*at)->next;
	err = *at == NULL ?
		      mr_fail(reason, -ENOENT, "%s: it has no steering rule %u",
			      base->info->name, id) :
		      remove_steering(port, at, reason);
	mri_dpdk_leave();
	return err;
}

void mri_dpdk_queues_close(struct dpdk_port *port)
{
	struct mr_ctx *ctx = port->base->ctx;

	while (port->steerings != NULL) {
		struct dpdk_steering *steering = port->steerings;

		/* A device that keeps it loses it when it stops. */
		if (remove_steering(port, &port->steerings, NULL) < 0) {
			port->steerings = steering->next;
			mr_free(ctx, steering);
		}
	}
	if (port->first_rss != NULL)
		(void)write_rss(port, port->first_rss);
	mr_free(ctx, port->first_rss);
	port->first_rss = NULL;
}
