/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of drivers/xdp/device/rss.c, on a NIC that ethtool's calls set. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <string.h>

#include "support/test.h"
#include "support/unit.h"
#include "xdp.h"

enum { N_TABLE = 128, N_KEY = 40, N_PLACES = 16, FIRST_QUEUE = 3 };

/* The device, as a driver of the kernel tells of it. */
static struct {
	uint32_t n_key;
	uint8_t key[N_KEY];
	uint32_t table[N_TABLE];
	uint8_t hfunc;
	uint8_t input_xfrm; /* after hfunc; not in old headers */
	uint64_t fields[64];
	struct ethtool_rx_flow_spec rules[N_PLACES];
	bool has_rule[N_PLACES];
	int rule_error;
	uint32_t n_taken; /* places that others take when they are looked at */
	uint32_t n_until_refused; /* calls that set; 0: none is */
} nic;

static bool is_refused(void)
{
	return nic.n_until_refused > 0 && --nic.n_until_refused == 0;
}

static int use_rxfh(struct ethtool_rxfh *head)
{
	const bool has_table = head->indir_size != 0 &&
			       head->indir_size != ETH_RXFH_INDIR_NO_CHANGE;
	const uint32_t n_table = has_table ? N_TABLE : 0;
	uint8_t *key = (uint8_t *)(head->rss_config + n_table);
	uint8_t *xfrm = &head->hfunc + 1;

	if (has_table)
		assert_int_equal(head->indir_size, N_TABLE);
	if (head->key_size != 0)
		assert_int_equal(head->key_size, nic.n_key);
	if (head->cmd == ETHTOOL_GRSSH) {
		if (has_table)
			memcpy(head->rss_config, nic.table, sizeof(nic.table));
		memcpy(key, nic.key, head->key_size);
		head->indir_size = N_TABLE;
		head->key_size = nic.n_key;
		head->hfunc = nic.hfunc;
		*xfrm = nic.input_xfrm;
		return 0;
	}
	/* It says nothing of what it does not change. */
	assert_int_equal(head->hfunc, 0);
	assert_int_equal(*xfrm, nic.input_xfrm);
	assert_int_not_equal(has_table, head->key_size != 0);
	if (is_refused())
		return -EIO;
	if (has_table)
		memcpy(nic.table, head->rss_config, sizeof(nic.table));
	memcpy(nic.key, key, head->key_size);
	return 0;
}

static int use_rule(struct ethtool_rxnfc *rxnfc)
{
	const uint32_t place = rxnfc->fs.location;

	assert_true(place < N_PLACES);
	if (rxnfc->cmd == ETHTOOL_SRXCLSRLINS) {
		if (is_refused())
			return -EINVAL;
		assert_false(nic.has_rule[place]);
		nic.rules[place] = rxnfc->fs;
		nic.has_rule[place] = true;
		return 0;
	}
	if (!nic.has_rule[place])
		return -ENOENT;
	if (rxnfc->cmd == ETHTOOL_SRXCLSRLDEL)
		nic.has_rule[place] = false;
	rxnfc->fs = nic.rules[place];
	return 0;
}

int mri_xdp_netdev_ethtool(const char *name, void *command)
{
	struct ethtool_rxnfc *rxnfc = command;
	uint32_t n = 0;

	assert_string_equal(name, "nic0");
	switch (rxnfc->cmd) {
	case ETHTOOL_GRSSH:
	case ETHTOOL_SRSSH:
		return use_rxfh(command);
	case ETHTOOL_GRXFH:
		rxnfc->data = nic.fields[rxnfc->flow_type];
		return 0;
	case ETHTOOL_SRXFH:
		if (is_refused())
			return -EINVAL;
		nic.fields[rxnfc->flow_type] = rxnfc->data;
		return 0;
	case ETHTOOL_GRXCLSRLCNT:
	case ETHTOOL_GRXCLSRLALL:
		for (uint32_t i = 0; i < N_PLACES; i++) {
			if (!nic.has_rule[i])
				continue;
			if (rxnfc->cmd == ETHTOOL_GRXCLSRLALL) {
				assert_true(n < rxnfc->rule_cnt);
				rxnfc->rule_locs[n] = i;
			}
			n++;
		}
		rxnfc->rule_cnt = n;
		rxnfc->data = N_PLACES;
		if (rxnfc->cmd == ETHTOOL_GRXCLSRLALL && nic.n_taken > 0) {
			uint32_t place = N_PLACES - 1;

			nic.n_taken--;
			while (nic.has_rule[place])
				place--;
			nic.has_rule[place] = true;
			nic.rules[place].ring_cookie = 9;
		}
		return nic.rule_error;
	default:
		return use_rule(rxnfc);
	}
}

int mri_xdp_refuse_request(const char *port, int err, const char *what,
			  const char *capability, struct mr_reason *reason)
{
	return mr_fail(reason, err, "%s: %s: %s", port, what, capability);
}

int mri_xdp_refuse_shared(const struct xdp_port *port, struct mr_reason *reason)
{
	return mr_fail(reason, -EBUSY, "%s: another", port->base.info->name);
}

/* As device/record.c, without a file. */
static struct xdp_change *find_change(struct xdp_port *port, uint32_t setting,
				      uint32_t id)
{
	struct xdp_change *change = port->record.changes;

	for (; change < port->record.changes + port->record.n; change++)
		if (change->setting == setting && change->id == id)
			break;
	return change;
}

int mri_xdp_change(struct xdp_port *port, enum xdp_setting setting, uint32_t id,
		   uint64_t value)
{
	struct xdp_change *change = find_change(port, setting, id);
	int err;

	if (change == port->record.changes + port->record.n) {
		change->setting = setting;
		change->id = id;
		err = mri_xdp_queue_setting(port, "nic0", change, false,
					    &change->before);
		if (err < 0)
			return err;
		port->record.n++;
	}
	err = mri_xdp_queue_setting(port, "nic0", change, true, &value);
	if (err == 0)
		change->since = value;
	return err;
}

bool mri_xdp_has_changed(const struct xdp_port *port, enum xdp_setting setting,
			 uint32_t id)
{
	const struct xdp_change *change =
		find_change((struct xdp_port *)port, setting, id);

	return change < port->record.changes + port->record.n &&
	       change->since != change->before;
}

static struct xdp_port port;

/* Two queues from FIRST_QUEUE on; the device has a table and key of its own. */
static void reset_nic(void)
{
	static struct mr_port_info info = { .name = "xdp:nic0" };

	memset(&nic, 0, sizeof(nic));
	memset(&port, 0, sizeof(port));
	nic.n_key = N_KEY;
	nic.hfunc = 1; /* Toeplitz */
	nic.input_xfrm = 2;
	for (uint32_t i = 0; i < N_KEY; i++)
		nic.key[i] = (uint8_t)(i * 7 + 1);
	for (uint32_t i = 0; i < N_TABLE; i++)
		nic.table[i] = i % 5;
	for (uint32_t i = 0; i < 64; i++)
		nic.fields[i] = i;
	port.base.info = &info;
	strcpy(port.dev.name, "nic0");
	strcpy(port.dev.driver, "fake");
	port.lease.n_queues = 2;
	port.lease.first_queue = FIRST_QUEUE;
}

static int set_rss(uint32_t keep, uint32_t fields, struct mr_reason *why)
{
	const struct mr_rss_config config = { .size = sizeof(config),
					      .keep = keep,
					      .fields = fields };

	return mri_xdp_set_rss(&port.base, &config, why);
}

TEST(default_is_symmetric_over_the_ports_queues)
{
	reset_nic();
	assert_int_equal(set_rss(0, MR_RSS_FIELDS_KEEP, NULL), 0);
	for (uint32_t i = 0; i < N_KEY; i++)
		assert_int_equal(nic.key[i], i % 2 ? 0x5a : 0x6d);
	for (uint32_t i = 0; i < N_TABLE; i++)
		assert_int_equal(nic.table[i], FIRST_QUEUE + i % 2);
	assert_int_equal(nic.fields[TCP_V4_FLOW], TCP_V4_FLOW);
}

TEST(only_requested_settings_change)
{
	const uint32_t queues[3] = { 1, 1, 0 };
	struct mr_rss_config config = { .size = sizeof(config),
					.keep = MR_RSS_KEEP_KEY,
					.fields = MR_RSS_FIELDS_ADDRS,
					.table = queues,
					.n_entries = 3 };

	reset_nic();
	assert_int_equal(mri_xdp_set_rss(&port.base, &config, NULL), 0);
	assert_int_equal(nic.key[1], 8);
	for (uint32_t i = 0; i < N_TABLE; i++)
		assert_int_equal(nic.table[i], FIRST_QUEUE + queues[i % 3]);
	assert_int_equal(nic.fields[UDP_V6_FLOW], RXH_IP_SRC | RXH_IP_DST);
	assert_int_equal(nic.fields[SCTP_V4_FLOW], SCTP_V4_FLOW);
	config.keep = MR_RSS_KEEP_KEY | MR_RSS_KEEP_TABLE;
	config.fields = MR_RSS_FIELDS_PORTS;
	assert_int_equal(mri_xdp_set_rss(&port.base, &config, NULL), 0);
	assert_int_equal(nic.fields[TCP_V4_FLOW],
			 RXH_IP_SRC | RXH_IP_DST | RXH_L4_B_0_1 | RXH_L4_B_2_3);
	assert_int_equal(nic.table[2], FIRST_QUEUE);
}

/* Whichever call the device refuses, all is as before. */
TEST(a_refusal_changes_nothing)
{
	uint32_t n = 0;
	int err;

	do {
		struct mr_reason why = { "" };

		reset_nic();
		/* One part was set before: it goes back to that. */
		assert_int_equal(set_rss(MR_RSS_KEEP_KEY, 1, NULL), 0);
		nic.n_until_refused = ++n;
		err = set_rss(0, MR_RSS_FIELDS_PORTS, &why);
		if (err == 0)
			break;
		assert_true(err == -EIO || err == -EINVAL || err == -ENOTSUP);
		assert_reason_has(&why,
				  err == -ENOTSUP ?
					  "cannot set these fields of the RSS "
					  "hash" :
					  "rejects this value of the ");
		assert_reason_has(&why, "xdp:nic0: driver 'fake' ");
		assert_int_equal(nic.key[N_KEY - 1],
				 (uint8_t)((N_KEY - 1) * 7 + 1));
		assert_int_equal(nic.key[0], 1);
		assert_int_equal(nic.fields[TCP_V4_FLOW],
				 RXH_IP_SRC | RXH_IP_DST);
		for (uint32_t i = 0; i < N_TABLE; i++)
			assert_int_equal(nic.table[i], FIRST_QUEUE + i % 2);
	} while (n < 100);
	/* 4 kinds of packets, 5 words of the key, 16 of the table. */
	assert_int_equal(n, 4 + 5 + 16 + 1);
}

TEST(missing_features_of_a_device_are_named)
{
	const uint8_t key[N_KEY + 1] = { 0 };
	struct mr_rss_config config = { .size = sizeof(config),
					.key = key,
					.n_key_bytes = sizeof(key) };
	static const uint32_t queues[N_TABLE + 1];
	struct mr_reason why = { "" };

	reset_nic();
	assert_int_equal(mri_xdp_set_rss(&port.base, &config, &why), -EINVAL);
	assert_reason_has(&why, "a key of 41 bytes: the device's has 40");
	config.key = NULL;
	config.table = queues;
	config.n_entries = N_TABLE + 1;
	assert_int_equal(mri_xdp_set_rss(&port.base, &config, &why), -EINVAL);
	assert_reason_has(&why, "129 entries: the device's has 128");
	nic.hfunc = 2;
	assert_int_equal(set_rss(0, 0, &why), -EOPNOTSUPP);
	assert_reason_has(&why, "'ethtool -X nic0 hfunc toeplitz'");
	assert_int_equal(set_rss(MR_RSS_KEEP_KEY, 0, &why), 0);
	nic.n_key = 0;
	assert_int_equal(set_rss(0, 0, &why), -EOPNOTSUPP);
	assert_reason_has(&why, "cannot set the hash key");
	assert_int_equal(port.record.n, N_TABLE / 8);
	reset_nic();
	nic.table[N_TABLE - 1] = 256;
	assert_int_equal(set_rss(MR_RSS_KEEP_KEY, 0, &why), -EOPNOTSUPP);
	assert_reason_has(&why, "has an RSS table with queues above 255");
	reset_nic();
	port.lease.first_queue = 255;
	assert_int_equal(set_rss(MR_RSS_KEEP_KEY, 0, &why), -EOPNOTSUPP);
	assert_reason_has(&why, "with queues above 255, up to 256,");
}

/* Between the look for a free place and the insertion. */
TEST(rules_of_others_are_not_replaced)
{
	const struct mr_steer_rule rule = { .size = sizeof(rule),
					    .ethertype = 0x88b5 };
	struct mr_reason why = { "" };
	uint32_t id = 0;

	reset_nic();
	nic.n_taken = 2;
	assert_int_equal(mri_xdp_steer(&port.base, &rule, &id, NULL), 0);
	assert_int_equal(id, 13);
	assert_int_equal(nic.rules[15].ring_cookie, 9);
	assert_int_equal(nic.rules[14].ring_cookie, 9);
	nic.n_taken = 10;
	assert_int_equal(mri_xdp_steer(&port.base, &rule, &id, &why), -EBUSY);
	assert_reason_has(&why, "others keep adding rules");
	assert_int_equal(nic.rules[12].ring_cookie, 9);
}

TEST(rules_take_the_last_free_places)
{
	struct mr_steer_rule rule = { .size = sizeof(rule),
				      .queue = 1,
				      .protocol = 17,
				      .dst_port = 0x40,
				      .dst_port_mask = 0xc0,
				      .dst = { 192, 0, 2, 0 },
				      .dst_mask = { 255, 255, 255, 0 } };
	const struct ethtool_rx_flow_spec *spec;
	struct mr_reason why = { "" };
	uint32_t id = 0, other = 0;

	reset_nic();
	nic.has_rule[15] = nic.has_rule[13] = true; /* others' */
	assert_int_equal(mri_xdp_steer(&port.base, &rule, &id, NULL), 0);
	assert_int_equal(id, 14);
	spec = &nic.rules[14];
	assert_int_equal(spec->flow_type, UDP_V4_FLOW);
	assert_int_equal(spec->ring_cookie, FIRST_QUEUE + 1);
	assert_int_equal(spec->h_u.udp_ip4_spec.pdst, htons(0x40));
	assert_int_equal(spec->m_u.udp_ip4_spec.pdst, htons(0xc0));
	assert_int_equal(spec->m_u.udp_ip4_spec.psrc, 0);
	assert_int_equal(spec->h_u.udp_ip4_spec.ip4dst, htonl(0xc0000200));
	assert_int_equal(spec->m_u.udp_ip4_spec.ip4dst, htonl(0xffffff00));
	rule.is_ipv6 = 1;
	rule.protocol = 6;
	assert_int_equal(mri_xdp_steer(&port.base, &rule, &other, NULL), 0);
	assert_int_equal(other, 12);
	spec = &nic.rules[12];
	assert_int_equal(spec->flow_type, TCP_V6_FLOW);
	assert_int_equal(spec->m_u.tcp_ip6_spec.pdst, htons(0xc0));
	assert_int_equal(spec->h_u.tcp_ip6_spec.ip6dst[0], htonl(0xc0000200));
	/* Ours go, others' do not. */
	assert_int_equal(mri_xdp_unsteer(&port.base, 15, &why), -ENOENT);
	assert_reason_has(&why, "no steering rule 15");
	assert_int_equal(mri_xdp_unsteer(&port.base, id, NULL), 0);
	assert_false(nic.has_rule[14]);
	assert_int_equal(mri_xdp_unsteer(&port.base, id, NULL), -ENOENT);
	/* Others can delete ours. */
	nic.has_rule[other] = false;
	assert_int_equal(mri_xdp_unsteer(&port.base, other, NULL), 0);
	assert_int_equal(mri_xdp_unsteer(&port.base, other, NULL), -ENOENT);
}

TEST(frames_without_ip_by_address_and_type)
{
	struct mr_steer_rule rule = { .size = sizeof(rule),
				      .ethertype = 0x88f7 };
	struct mr_reason why = { "" };
	uint32_t id = 0;

	reset_nic();
	assert_int_equal(mri_xdp_steer(&port.base, &rule, &id, NULL), 0);
	assert_int_equal(nic.rules[id].flow_type, ETHER_FLOW);
	assert_int_equal(nic.rules[id].h_u.ether_spec.h_proto, htons(0x88f7));
	assert_int_equal(nic.rules[id].m_u.ether_spec.h_proto, 0xffff);
	assert_int_equal(nic.rules[id].m_u.ether_spec.h_dest[0], 0);
	rule.ethertype = 0;
	memset(rule.dst_mac, 2, 6);
	assert_int_equal(mri_xdp_steer(&port.base, &rule, &id, NULL), 0);
	assert_int_equal(nic.rules[id].m_u.ether_spec.h_proto, 0);
	assert_int_equal(nic.rules[id].m_u.ether_spec.h_dest[5], 0xff);
	assert_int_equal(nic.rules[id].h_u.ether_spec.h_dest[5], 2);
	nic.n_until_refused = 1;
	assert_int_equal(mri_xdp_steer(&port.base, &rule, &id, &why), -EINVAL);
	assert_reason_has(&why, "rejects this value of a steering rule");
	memset(nic.has_rule, 1, sizeof(nic.has_rule));
	assert_int_equal(mri_xdp_steer(&port.base, &rule, &id, &why), -ENOSPC);
	nic.rule_error = -EOPNOTSUPP;
	assert_int_equal(mri_xdp_steer(&port.base, &rule, &id, &why),
			 -EOPNOTSUPP);
	assert_reason_has(&why, "'ethtool -K nic0 ntuple on'");
}
