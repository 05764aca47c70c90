/* SPDX-License-Identifier: BSD-3-Clause */
/* RSS and steering: check the arguments, then ask the driver. */
#include <errno.h>

#include <millrace/driver.h>
#include <millrace/experimental/port_queues.h>

#include "base/base.h"
#include "port/hand_over.h"

enum { TCP = 6, UDP = 17 };

static int refuse_steering(const struct mr_port *port, const char *what,
			   struct mr_reason *reterr_reason)
{
	return mr_fail(reterr_reason, -ENOTSUP, "%s: driver %s has no %s",
		       port->info->name, port->driver->name, what);
}

static int check_queue(const struct mr_port *port, const char *what,
		       uint32_t queue, struct mr_reason *reterr_reason)
{
	if (queue < port->info->n_rxqs)
		return 0;
	return mr_fail(reterr_reason, -EINVAL,
		       "%s: %s: queue %u: it has %u rx queues, from 0 on",
		       port->info->name, what, queue, port->info->n_rxqs);
}

static int check_rss(const struct mr_port *port, const struct mr_rss_config *c,
		     struct mr_reason *reterr_reason)
{
	const char *wrong = NULL;
	int err = 0;

	if (c->keep & ~(uint32_t)(MR_RSS_KEEP_KEY | MR_RSS_KEEP_TABLE))
		wrong = "keep has an unknown bit";
	else if (c->fields > MR_RSS_FIELDS_PORTS)
		wrong = "fields has an unknown value";
	else if ((c->key != NULL) != (c->n_key_bytes != 0) ||
		 c->n_key_bytes > MR_RSS_KEY_MAX)
		wrong = "a key has 1 to 64 bytes, and no key has 0";
	else if ((c->table != NULL) != (c->n_entries != 0))
		wrong = "a table has entries, and no table has 0";
	else if (c->reserved != 0)
		wrong = "reserved must be 0";
	if (wrong != NULL)
		return mr_fail(reterr_reason, -EINVAL, "%s: mr_rss_config: %s",
			       port->info->name, wrong);
	for (uint32_t i = 0; i < c->n_entries && err == 0; i++)
		err = check_queue(port, "RSS table", c->table[i],
				  reterr_reason);
	return err;
}

int mr_port_set_rss(struct mr_port *port, const struct mr_rss_config *config,
		    struct mr_reason *reterr_reason)
{
	struct mr_rss_config c;
	int err = mri_copy_sized(&c, config, sizeof(c), "mr_rss_config",
				 reterr_reason);

	if (err == 0)
		err = check_rss(port, &c, reterr_reason);
	if (err < 0)
		return err;
	if (port->driver->set_rss == NULL)
		return refuse_steering(port, "RSS", reterr_reason);
	return mri_port_change(port)->set_rss(port, &c, reterr_reason);
}

static bool has_any(const void *bytes, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (((const uint8_t *)bytes)[i] != 0)
			return true;
	return false;
}

/* A value without its mask would match everything. */
static bool is_masked(const void *value, const void *mask, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (((const uint8_t *)value)[i] & ~((const uint8_t *)mask)[i])
			return false;
	return true;
}

static int check_rule(const struct mr_port *port, const struct mr_steer_rule *r,
		      struct mr_reason *reterr_reason)
{
	const bool has_l2 =
		r->ethertype != 0 || has_any(r->dst_mac, sizeof(r->dst_mac));
	const bool has_l4 =
		r->is_ipv6 != 0 ||
		has_any(&r->src_port,
			sizeof(*r) - offsetof(struct mr_steer_rule, src_port));
	const char *wrong = NULL;

	if (r->protocol == 0)
		wrong = has_l4  ? "addresses and ports need a protocol" :
			!has_l2 ? "it matches every frame" :
				  NULL;
	else if (r->protocol != TCP && r->protocol != UDP)
		wrong = "its protocol is not 6 (TCP) or 17 (UDP)";
	else if (has_l2)
		wrong = "with a protocol, it has no MAC address or EtherType";
	else if (r->is_ipv6 > 1)
		wrong = "is_ipv6 is 0 or 1";
	else if (!is_masked(&r->src_port, &r->src_port_mask, 2) ||
		 !is_masked(&r->dst_port, &r->dst_port_mask, 2) ||
		 !is_masked(r->src, r->src_mask, sizeof(r->src)) ||
		 !is_masked(r->dst, r->dst_mask, sizeof(r->dst)))
		wrong = "a port or address has bits outside its mask";
	if (wrong == NULL && r->reserved != 0)
		wrong = "reserved must be 0";
	if (wrong != NULL)
		return mr_fail(reterr_reason, -EINVAL, "%s: mr_steer_rule: %s",
			       port->info->name, wrong);
	return check_queue(port, "steering", r->queue, reterr_reason);
}

int mr_port_steer(struct mr_port *port, const struct mr_steer_rule *rule,
		  uint32_t *ret_id, struct mr_reason *reterr_reason)
{
	struct mr_steer_rule r;
	int err = mri_copy_sized(&r, rule, sizeof(r), "mr_steer_rule",
				 reterr_reason);

	if (err == 0)
		err = check_rule(port, &r, reterr_reason);
	if (err < 0)
		return err;
	if (port->driver->steer == NULL)
		return refuse_steering(port, "steering rules", reterr_reason);
	return mri_port_change(port)->steer(port, &r, ret_id, reterr_reason);
}

int mr_port_unsteer(struct mr_port *port, uint32_t id,
		    struct mr_reason *reterr_reason)
{
	if (port->driver->unsteer == NULL)
		return refuse_steering(port, "steering rules", reterr_reason);
	return mri_port_change(port)->unsteer(port, id, reterr_reason);
}
