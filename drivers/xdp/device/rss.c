/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which queue the device gives a frame: RSS and steering rules, as ethtool(8)
 * -X, -N rx-flow-hash and -N flow-type set them. Others share them, so each
 * part is a setting that record.c restores: 8 entries of the table or bytes
 * of the key, the fields of one packet type, a rule's location.
 *
 * Source: linux/net/ethtool/ioctl.c, include/uapi/linux/ethtool.h.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <netinet/in.h>
#include <string.h>

#include "xdp.h"

enum {
	TOEPLITZ = 1, /* ETH_RSS_HASH_TOP */
	PER_WORD = 8, /* entries or bytes in a change */
	MAX_RULES = 4096,
	MAX_LOOKS = 4, /* for a free slot, if others take it */
};

static const uint32_t flow_types[] = { TCP_V4_FLOW, UDP_V4_FLOW, TCP_V6_FLOW,
				       UDP_V6_FLOW };

/* A struct ethtool_rxfh and its trailing data. */
struct rxfh {
	struct ethtool_rxfh head;
	uint32_t data[XDP_MAX_TABLE + XDP_MAX_KEY / 4]; /* table, then key */
};

static int read_rxfh(const char *name, struct rxfh *rxfh)
{
	int err;

	/* The first call returns the sizes. */
	*rxfh = (struct rxfh){ .head = { .cmd = ETHTOOL_GRSSH } };
	err = mri_xdp_netdev_ethtool(name, rxfh);
	if (err < 0)
		return err;
	if (rxfh->head.indir_size > XDP_MAX_TABLE ||
	    rxfh->head.key_size > XDP_MAX_KEY)
		return -E2BIG;
	rxfh->head.cmd = ETHTOOL_GRSSH;
	return mri_xdp_netdev_ethtool(name, rxfh);
}

static uint8_t *key_of(struct rxfh *rxfh)
{
	return (uint8_t *)(rxfh->data + rxfh->head.indir_size);
}

/* One word of the table or of the key. */
static int use_rxfh(const char *name, const struct xdp_change *change,
		    bool is_write, uint64_t *value)
{
	const bool is_key = change->setting == XDP_SETTING_RSS_KEY;
	const uint32_t first = change->id * PER_WORD;
	uint8_t *bytes = (uint8_t *)value;
	struct rxfh rxfh;
	uint32_t n;
	int err = read_rxfh(name, &rxfh);

	if (err < 0)
		return err;
	n = is_key ? rxfh.head.key_size : rxfh.head.indir_size;
	if (first >= n)
		return -ENOENT;
	n = n - first < PER_WORD ? n - first : PER_WORD;
	if (!is_write)
		*value = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint8_t *in_key = key_of(&rxfh) + first + i;
		uint32_t *in_table = rxfh.data + first + i;

		if (!is_write && !is_key && *in_table > UINT8_MAX)
			return -ERANGE;
		if (!is_write)
			bytes[i] = is_key ? *in_key : (uint8_t)*in_table;
		else if (is_key)
			*in_key = bytes[i];
		else
			*in_table = bytes[i];
	}
	if (!is_write)
		return 0;
	/* Omit the other part, which the device may not let us set. */
	if (is_key) {
		memmove(rxfh.data, key_of(&rxfh), rxfh.head.key_size);
		rxfh.head.indir_size = ETH_RXFH_INDIR_NO_CHANGE;
	} else {
		rxfh.head.key_size = 0;
	}
	rxfh.head.cmd = ETHTOOL_SRSSH;
	rxfh.head.hfunc = 0; /* ETH_RSS_HASH_NO_CHANGE */
	return mri_xdp_netdev_ethtool(name, &rxfh);
}

static int use_fields(const char *name, uint32_t flow_type, bool is_write,
		      uint64_t *value)
{
	struct ethtool_rxnfc rxnfc = {
		.cmd = is_write ? ETHTOOL_SRXFH : ETHTOOL_GRXFH,
		.flow_type = flow_type,
		.data = *value,
	};
	const int err = mri_xdp_netdev_ethtool(name, &rxnfc);

	*value = rxnfc.data;
	return err;
}

static void fill_ports(struct ethtool_tcpip4_spec *spec, uint16_t src,
		       uint16_t dst, const uint8_t *from, const uint8_t *to)
{
	spec->psrc = htons(src);
	spec->pdst = htons(dst);
	memcpy(&spec->ip4src, from, 4);
	memcpy(&spec->ip4dst, to, 4);
}

static void fill_ports6(struct ethtool_tcpip6_spec *spec, uint16_t src,
			uint16_t dst, const uint8_t *from, const uint8_t *to)
{
	spec->psrc = htons(src);
	spec->pdst = htons(dst);
	memcpy(spec->ip6src, from, 16);
	memcpy(spec->ip6dst, to, 16);
}

static void fill_rule(const struct mr_steer_rule *rule,
		      struct ethtool_rx_flow_spec *spec)
{
	const bool is_tcp = rule->protocol == IPPROTO_TCP;
	static const uint8_t zero[6];

	if (rule->protocol == 0) {
		spec->flow_type = ETHER_FLOW;
		spec->h_u.ether_spec.h_proto = htons(rule->ethertype);
		spec->m_u.ether_spec.h_proto =
			rule->ethertype != 0 ? UINT16_MAX : 0;
		memcpy(spec->h_u.ether_spec.h_dest, rule->dst_mac, 6);
		if (memcmp(rule->dst_mac, zero, 6) != 0)
			memset(spec->m_u.ether_spec.h_dest, 0xff, 6);
	} else if (rule->is_ipv6) {
		spec->flow_type = is_tcp ? TCP_V6_FLOW : UDP_V6_FLOW;
		fill_ports6(&spec->h_u.tcp_ip6_spec, rule->src_port,
			    rule->dst_port, rule->src, rule->dst);
		fill_ports6(&spec->m_u.tcp_ip6_spec, rule->src_port_mask,
			    rule->dst_port_mask, rule->src_mask,
			    rule->dst_mask);
	} else {
		spec->flow_type = is_tcp ? TCP_V4_FLOW : UDP_V4_FLOW;
		fill_ports(&spec->h_u.tcp_ip4_spec, rule->src_port,
			   rule->dst_port, rule->src, rule->dst);
		fill_ports(&spec->m_u.tcp_ip4_spec, rule->src_port_mask,
			   rule->dst_port_mask, rule->src_mask, rule->dst_mask);
	}
}

/* The rule at a location: its queue + 1, or 0 for none. Deleting a rule that
 * somebody else has deleted succeeds. */
static int use_rule(const struct xdp_port *port, const char *name,
		    uint32_t place, bool is_write, uint64_t *value)
{
	struct ethtool_rxnfc rxnfc = { .fs = { .location = place } };
	uint64_t left = 0;
	int err;

	rxnfc.cmd = !is_write   ? ETHTOOL_GRXCLSRULE :
		    *value == 0 ? ETHTOOL_SRXCLSRLDEL :
				  ETHTOOL_SRXCLSRLINS;
	if (is_write && *value != 0) {
		if (port->steering == NULL) /* another's rule, now unknown */
			return -ENOENT;
		fill_rule(port->steering, &rxnfc.fs);
		rxnfc.fs.ring_cookie = *value - 1;
	}
	err = mri_xdp_netdev_ethtool(name, &rxnfc);
	if (is_write && *value == 0 && err < 0 &&
	    use_rule(port, name, place, false, &left) == 0 && left == 0)
		return 0;
	if (is_write)
		return err;
	*value = err < 0 ? 0 : rxnfc.fs.ring_cookie + 1;
	return err == -ENOENT || err == -EINVAL ? 0 : err;
}

int mri_xdp_queue_setting(const struct xdp_port *port, const char *name,
			  const struct xdp_change *change, bool is_write,
			  uint64_t *value)
{
	if (change->setting == XDP_SETTING_RSS_FIELDS)
		return use_fields(name, change->id, is_write, value);
	if (change->setting == XDP_SETTING_STEER)
		return use_rule(port, name, change->id, is_write, value);
	return use_rxfh(name, change, is_write, value);
}

static int refuse_value(const struct xdp_port *port, int err, const char *what,
			struct mr_reason *reason)
{
	const char *const name = port->base.info->name;

	if (err == -EALREADY)
		return mri_xdp_refuse_shared(port, reason);
	if (err == -EOPNOTSUPP)
		return mr_fail(reason, err,
			       "%s: driver '%s' cannot set %s ('ethtool -x' "
			       "and '-n' show what it has)",
			       name, port->dev.driver, what);
	if (err == -E2BIG || err == -ERANGE)
		return mr_fail(reason, -EOPNOTSUPP,
			       "%s: driver '%s' has %s, which could not be "
			       "restored",
			       name, port->dev.driver,
			       err == -ERANGE ?
				       "an RSS table with queues above 255" :
				       "an RSS table of more than 1024 "
				       "entries, or a key of more than 64 "
				       "bytes");
	if (err == -EPERM || err == -ENODEV)
		return mri_xdp_refuse_request(name, err, what, "CAP_NET_ADMIN",
					      reason);
	return mr_fail(reason, err == -ENOSPC || err == -EINVAL ? err : -EIO,
		       "%s: driver '%s' rejects this value of %s: %s", name,
		       port->dev.driver, what, mr_strerror(-err));
}

/* Set all words of the table or of the key. */
static int change_words(struct xdp_port *port, enum xdp_setting setting,
			const uint8_t *bytes, uint32_t n)
{
	int err = 0;

	for (uint32_t i = 0; i < n && err == 0; i += PER_WORD) {
		uint64_t word = 0;

		memcpy(&word, bytes + i, n - i < PER_WORD ? n - i : PER_WORD);
		err = mri_xdp_change(port, setting, i / PER_WORD, word);
	}
	return err;
}

static int change_fields(struct xdp_port *port, uint32_t fields)
{
	uint64_t bits = RXH_IP_SRC | RXH_IP_DST;
	int err = 0;

	if (fields == MR_RSS_FIELDS_KEEP)
		return 0;
	if (fields == MR_RSS_FIELDS_PORTS)
		bits |= RXH_L4_B_0_1 | RXH_L4_B_2_3;
	for (uint32_t i = 0; i < 4 && err == 0; i++)
		err = mri_xdp_change(port, XDP_SETTING_RSS_FIELDS,
				     flow_types[i], bits);
	return err;
}

/* Check the request against the device. */
static int check_rss(const struct xdp_port *port, const struct rxfh *now,
		     const struct mr_rss_config *c, struct mr_reason *reason)
{
	const char *const name = port->base.info->name;
	const bool has_key = !(c->keep & MR_RSS_KEEP_KEY);
	const uint32_t end = port->lease.first_queue + port->lease.n_queues;

	if (!(c->keep & MR_RSS_KEEP_TABLE) && end > UINT8_MAX + 1)
		return mr_fail(reason, -EOPNOTSUPP,
			       "%s: an RSS table with queues above 255, up to "
			       "%u, is not supported",
			       name, end - 1);
	if (has_key && now->head.key_size == 0)
		return mr_fail(reason, -EOPNOTSUPP,
			       "%s: driver '%s' cannot set the "
			       "hash key, so both directions of a connection "
			       "have different hashes",
			       name, port->dev.driver);
	if (has_key && now->head.hfunc != 0 && now->head.hfunc != TOEPLITZ)
		return mr_fail(reason, -EOPNOTSUPP,
			       "%s: its hash is not Toeplitz's: 'ethtool -X %s "
			       "hfunc toeplitz' sets that",
			       name, port->dev.name);
	if (has_key && c->key != NULL && c->n_key_bytes != now->head.key_size)
		return mr_fail(reason, -EINVAL,
			       "%s: a key of %u bytes: the device's has %u",
			       name, c->n_key_bytes, now->head.key_size);
	if (!(c->keep & MR_RSS_KEEP_TABLE) &&
	    c->n_entries > now->head.indir_size)
		return mr_fail(reason, -EINVAL,
			       "%s: an RSS table of %u entries: the device's "
			       "has %u",
			       name, c->n_entries, now->head.indir_size);
	return 0;
}

/* Set the parts in the order of struct mr_rss_config; stop at an error. */
static int change_rss(struct xdp_port *port, const struct rxfh *now,
		      const struct mr_rss_config *c, const char **ret_what)
{
	uint8_t table[XDP_MAX_TABLE], key[XDP_MAX_KEY];
	int err = 0;

	for (uint32_t i = 0; i < now->head.indir_size; i++)
		table[i] = (uint8_t)(port->lease.first_queue +
				     mr_rss_queue(c, i, port->lease.n_queues));
	for (uint32_t i = 0; i < now->head.key_size; i++)
		key[i] = mr_rss_key_byte(c, i);
	*ret_what = "these fields of the RSS hash";
	err = change_fields(port, c->fields);
	if (err == -EINVAL) /* igb: TCP without its ports */
		err = -EOPNOTSUPP;
	if (err == 0 && !(c->keep & MR_RSS_KEEP_KEY)) {
		*ret_what = "the RSS key";
		err = change_words(port, XDP_SETTING_RSS_KEY, key,
				   now->head.key_size);
	}
	if (err == 0 && !(c->keep & MR_RSS_KEEP_TABLE)) {
		*ret_what = "the RSS table";
		err = change_words(port, XDP_SETTING_RSS_TABLE, table,
				   now->head.indir_size);
	}
	return err;
}

/* Undo what came after the changes were was[n]. */
static void go_back(struct xdp_port *port, const uint64_t *was, uint32_t n)
{
	for (uint32_t i = port->record.n; i-- > 0;) {
		const struct xdp_change *c = &port->record.changes[i];
		const uint64_t value = i < n ? was[i] : c->before;

		if (c->since != value)
			(void)mri_xdp_change(port, c->setting, c->id, value);
	}
}

int mri_xdp_set_rss(struct mr_port *base, const struct mr_rss_config *config,
		    struct mr_reason *reterr_reason)
{
	struct xdp_port *port = (struct xdp_port *)base;
	const uint32_t n = port->record.n;
	uint64_t was[XDP_MAX_CHANGES];
	const char *what = "RSS";
	struct rxfh now;
	int err = read_rxfh(port->dev.name, &now);

	if (err == 0 && now.head.indir_size == 0)
		err = -EOPNOTSUPP;
	if (err < 0)
		return refuse_value(port, err, what, reterr_reason);
	err = check_rss(port, &now, config, reterr_reason);
	if (err < 0)
		return err;
	for (uint32_t i = 0; i < n; i++)
		was[i] = port->record.changes[i].since;
	err = change_rss(port, &now, config, &what);
	if (err == 0)
		return 0;
	go_back(port, was, n);
	return refuse_value(port, err, what, reterr_reason);
}

int mri_xdp_rss_open(struct xdp_port *port, struct mr_reason *reterr_reason)
{
	const struct mr_rss_config symmetric = { .size = sizeof(symmetric) };

	return port->options.rss == XDP_RSS_SYMMETRIC ?
		       port->base.driver->set_rss(&port->base, &symmetric,
						  reterr_reason) :
		       0;
}

/* A free location for a rule: the last, as earlier ones have priority. */
static int find_place(const struct xdp_port *port, uint32_t *ret_place)
{
	struct {
		struct ethtool_rxnfc rxnfc;
		uint32_t places[MAX_RULES];
	} all = { .rxnfc = { .cmd = ETHTOOL_GRXCLSRLCNT } };
	struct ethtool_rxnfc *rxnfc = &all.rxnfc;
	uint32_t place, n;
	int err = mri_xdp_netdev_ethtool(port->dev.name, rxnfc);

	if (err < 0)
		return err;
	if (rxnfc->rule_cnt > MAX_RULES)
		return -ENOSPC;
	rxnfc->cmd = ETHTOOL_GRXCLSRLALL;
	err = mri_xdp_netdev_ethtool(port->dev.name, rxnfc);
	if (err < 0)
		return err;
	n = rxnfc->rule_cnt;
	/* The size of the table; some drivers report it only here. */
	place = (uint32_t)rxnfc->data & ~(uint32_t)RX_CLS_LOC_SPECIAL;
	while (place-- > 0) {
		uint32_t i = 0;

		while (i < n && rxnfc->rule_locs[i] != place)
			i++;
		if (i == n) {
			*ret_place = place;
			return 0;
		}
	}
	return -ENOSPC;
}

int mri_xdp_steer(struct mr_port *base, const struct mr_steer_rule *rule,
		  uint32_t *ret_id, struct mr_reason *reterr_reason)
{
	struct xdp_port *port = (struct xdp_port *)base;
	const uint32_t queue = port->lease.first_queue + rule->queue;
	uint32_t place;
	int err = find_place(port, &place);

	/* Another program may just have taken it: do not replace its rule. */
	for (int i = 0; i < MAX_LOOKS && err == 0; i++) {
		uint64_t taken = 0;

		err = use_rule(port, port->dev.name, place, false, &taken);
		if (err < 0 || taken == 0)
			break;
		err = i + 1 < MAX_LOOKS ? find_place(port, &place) : -EEXIST;
	}
	if (err == 0) {
		port->steering = rule;
		err = mri_xdp_change(port, XDP_SETTING_STEER, place, queue + 1);
		port->steering = NULL;
	}
	if (err == -EOPNOTSUPP)
		return mr_fail(reterr_reason, err,
			       "%s: driver '%s' has no steering rules, or "
			       "'ethtool -K %s ntuple on' enables them",
			       port->base.info->name, port->dev.driver,
			       port->dev.name);
	if (err == -EEXIST)
		return mr_fail(reterr_reason, -EBUSY,
			       "%s: others keep adding rules to the places "
			       "found free: try again",
			       port->base.info->name);
	if (err < 0)
		return refuse_value(port, err, "a steering rule",
				    reterr_reason);
	*ret_id = place;
	return 0;
}

int mri_xdp_unsteer(struct mr_port *base, uint32_t id,
		    struct mr_reason *reterr_reason)
{
	struct xdp_port *port = (struct xdp_port *)base;
	int err;

	if (!mri_xdp_has_changed(port, XDP_SETTING_STEER, id))
		return mr_fail(reterr_reason, -ENOENT,
			       "%s: it has no steering rule %u",
			       port->base.info->name, id);
	err = mri_xdp_change(port, XDP_SETTING_STEER, id, 0);
	return err < 0 ? refuse_value(port, err, "a steering rule",
				      reterr_reason) :
			 0;
}
