/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_flow.h>

#include "flows.h"

struct rte_flow {
	struct rte_flow *next;
	uint16_t from;
	int to;
	uint64_t hits, n_bytes;
	bool is_steering; /* to is a queue */
	uint16_t dst_port;
};

struct flows_refusals flows_refusals;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rte_flow *flows;

static struct rte_flow *find_flow(uint16_t from)
{
	struct rte_flow *flow = flows;

	while (flow != NULL && (flow->from != from || flow->is_steering))
		flow = flow->next;
	return flow;
}

int flows_queue(uint16_t port_id, const uint8_t *bytes, uint32_t n_bytes)
{
	int to = FLOWS_NONE;

	if (n_bytes < 42 || bytes[12] != 8 || bytes[13] != 0 || bytes[23] != 17)
		return to;
	pthread_mutex_lock(&lock);
	for (const struct rte_flow *flow = flows; flow; flow = flow->next)
		if (flow->from == port_id && flow->is_steering &&
		    flow->dst_port == (bytes[36] << 8 | bytes[37]))
			to = flow->to;
	pthread_mutex_unlock(&lock);
	return to;
}

int flows_take(uint16_t port_id, uint32_t n_bytes)
{
	struct rte_flow *flow;
	int to = FLOWS_NONE;

	pthread_mutex_lock(&lock);
	flow = find_flow(port_id);
	if (flow != NULL) {
		flow->hits++;
		flow->n_bytes += n_bytes;
		to = flow->to;
	}
	pthread_mutex_unlock(&lock);
	return to;
}

uint32_t flows_count(void)
{
	uint32_t n = 0;

	pthread_mutex_lock(&lock);
	for (const struct rte_flow *flow = flows; flow; flow = flow->next)
		n++;
	pthread_mutex_unlock(&lock);
	return n;
}

static int refuse_flow(struct rte_flow_error *error, int err, const char *words)
{
	return rte_flow_error_set(error, err, RTE_FLOW_ERROR_TYPE_UNSPECIFIED,
				  NULL, words);
}

static bool is_rings(uint16_t port_id)
{
	struct rte_eth_dev_info info;

	return rte_eth_dev_info_get(port_id, &info) == 0 &&
	       strcmp(info.driver_name, "net_ring") == 0;
}

static bool is_zero(const void *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (((const uint8_t *)bytes)[i] != 0)
			return false;
	return true;
}

/* Of UDP over IPv4 to one port. */
static int read_steering(struct rte_flow *flow,
			 const struct rte_flow_item *items,
			 const struct rte_flow_action *actions,
			 struct rte_flow_error *error)
{
	const struct rte_flow_item_udp *udp = items[2].spec,
				       *mask = items[2].mask;

	if (items[0].spec != NULL || items[1].type != RTE_FLOW_ITEM_TYPE_IPV4 ||
	    !is_zero(items[1].mask, sizeof(struct rte_flow_item_ipv4)) ||
	    items[2].type != RTE_FLOW_ITEM_TYPE_UDP ||
	    items[3].type != RTE_FLOW_ITEM_TYPE_END || udp->hdr.src_port != 0 ||
	    mask->hdr.src_port != 0 || mask->hdr.dst_port != UINT16_MAX)
		return refuse_flow(error, EINVAL, "pattern");
	if (actions[1].type != RTE_FLOW_ACTION_TYPE_END)
		return refuse_flow(error, ENOTSUP, "actions");
	flow->is_steering = true;
	flow->dst_port = ntohs(udp->hdr.dst_port);
	flow->to = ((const struct rte_flow_action_queue *)actions->conf)->index;
	return 0;
}

/* What it does, and no more: of all frames from one port, with a counter. */
static int read_flow(struct rte_flow *flow, uint16_t port_id,
		     const struct rte_flow_attr *attr,
		     const struct rte_flow_item *item,
		     const struct rte_flow_action *action,
		     struct rte_flow_error *error)
{
	if (!is_rings(port_id))
		return refuse_flow(error, ENOSYS, NULL);
	if (attr->transfer + attr->ingress != 1 || attr->egress ||
	    attr->group != 0)
		return refuse_flow(error, ENOTSUP, "attributes");
	flow->from = port_id;
	if (attr->transfer &&
	    item->type == RTE_FLOW_ITEM_TYPE_REPRESENTED_PORT) {
		const struct rte_flow_item_ethdev *of = item++->spec;

		flow->from = of->port_id;
	} else if (attr->transfer) {
		return refuse_flow(error, ENOTSUP, "no port");
	}
	if (attr->ingress && action->type == RTE_FLOW_ACTION_TYPE_QUEUE)
		return read_steering(flow, item, action, error);
	if (item->type != RTE_FLOW_ITEM_TYPE_ETH || item->spec != NULL ||
	    item[1].type != RTE_FLOW_ITEM_TYPE_END)
		return refuse_flow(error, ENOTSUP, "pattern");
	if (action->type != RTE_FLOW_ACTION_TYPE_COUNT ||
	    action[2].type != RTE_FLOW_ACTION_TYPE_END)
		return refuse_flow(error, ENOTSUP, "actions");
	action++;
	if (attr->ingress && action->type == RTE_FLOW_ACTION_TYPE_DROP) {
		flow->to = FLOWS_DROP;
	} else if (attr->transfer &&
		   action->type == RTE_FLOW_ACTION_TYPE_REPRESENTED_PORT) {
		const struct rte_flow_action_ethdev *to = action->conf;

		flow->to = to->port_id;
	} else {
		return refuse_flow(error, ENOTSUP, "action");
	}
	return 0;
}

int rte_flow_pick_transfer_proxy(uint16_t port_id, uint16_t *ret_port_id,
				 struct rte_flow_error *error)
{
	(void)error;
	*ret_port_id = port_id;
	return 0;
}

int rte_flow_validate(uint16_t port_id, const struct rte_flow_attr *attr,
		      const struct rte_flow_item pattern[],
		      const struct rte_flow_action actions[],
		      struct rte_flow_error *error)
{
	struct rte_flow flow = { 0 };
	const int err =
		read_flow(&flow, port_id, attr, pattern, actions, error);
	const char *words = flow.to == FLOWS_DROP ? flows_refusals.drop :
						    flows_refusals.forward;

	if (err == 0 && words != NULL)
		return refuse_flow(error, ENOTSUP, words);
	return err;
}

struct rte_flow *rte_flow_create(uint16_t port_id,
				 const struct rte_flow_attr *attr,
				 const struct rte_flow_item pattern[],
				 const struct rte_flow_action actions[],
				 struct rte_flow_error *error)
{
	struct rte_flow *flow = calloc(1, sizeof(*flow));

	if (flow == NULL ||
	    read_flow(flow, port_id, attr, pattern, actions, error) < 0) {
		free(flow);
		return NULL;
	}
	pthread_mutex_lock(&lock);
	if ((!flow->is_steering && find_flow(flow->from) != NULL) ||
	    flows_refusals.create != NULL) {
		(void)refuse_flow(error, EEXIST, flows_refusals.create);
		free(flow);
		flow = NULL;
	} else {
		flow->next = flows;
		flows = flow;
	}
	pthread_mutex_unlock(&lock);
	return flow;
}

int rte_flow_destroy(uint16_t port_id, struct rte_flow *flow,
		     struct rte_flow_error *error)
{
	struct rte_flow **at = &flows;

	(void)port_id, (void)error;
	pthread_mutex_lock(&lock);
	while (*at != flow)
		at = &(*at)->next;
	*at = flow->next;
	pthread_mutex_unlock(&lock);
	free(flow);
	return 0;
}

int rte_flow_query(uint16_t port_id, struct rte_flow *flow,
		   const struct rte_flow_action *action, void *data,
		   struct rte_flow_error *error)
{
	struct rte_flow_query_count *count = data;

	(void)port_id;
	if (action->type != RTE_FLOW_ACTION_TYPE_COUNT)
		return refuse_flow(error, ENOTSUP, "query");
	pthread_mutex_lock(&lock);
	count->hits_set = count->bytes_set = 1;
	count->hits = flow->hits;
	count->bytes = flow->n_bytes;
	if (count->reset)
		flow->hits = flow->n_bytes = 0;
	pthread_mutex_unlock(&lock);
	return 0;
}
