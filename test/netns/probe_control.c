/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands of the probe that set something on a port's device. */
#include <linux/capability.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

enum { MAX_MACS = 8, MAX_STATS = 1024 };

/* promisc PORT 0|1 */
json_t *probe_promisc(struct probe *probe, const struct arguments *a)
{
	struct mr_reason reason = { "" };

	return answer(mr_port_set_promisc(port_of(probe, a),
					  (uint32_t)number(a, 2, 0), &reason),
		      &reason);
}

/* allmulti PORT 0|1 */
json_t *probe_allmulti(struct probe *probe, const struct arguments *a)
{
	struct mr_reason reason = { "" };

	return answer(mr_port_set_allmulti(port_of(probe, a),
					   (uint32_t)number(a, 2, 0), &reason),
		      &reason);
}

/* mtu PORT BYTES */
json_t *probe_mtu(struct probe *probe, const struct arguments *a)
{
	struct mr_reason reason = { "" };

	return answer(mr_port_set_mtu(port_of(probe, a),
				      (uint32_t)number(a, 2, 0), &reason),
		      &reason);
}

static void read_mac(const char *text, uint8_t mac[6])
{
	unsigned int b[6] = { 0 };

	sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x", &b[0], &b[1], &b[2], &b[3],
	       &b[4], &b[5]);
	for (uint32_t i = 0; i < 6; i++)
		mac[i] = (uint8_t)b[i];
}

/* mac PORT ADDRESS */
json_t *probe_mac(struct probe *probe, const struct arguments *a)
{
	struct mr_reason reason = { "" };
	uint8_t mac[6];

	read_mac(a->words[2], mac);
	return answer(mr_port_set_mac(port_of(probe, a), mac, &reason),
		      &reason);
}

/* filter PORT [ADDRESS ...] */
json_t *probe_filter(struct probe *probe, const struct arguments *a)
{
	struct mr_reason reason = { "" };
	uint8_t macs[MAX_MACS][6];
	uint32_t n = 0;

	for (; n < MAX_MACS && n + 2 < a->n; n++)
		read_mac(a->words[n + 2], macs[n]);
	return answer(
		mr_port_set_mac_filter(port_of(probe, a), macs, n, &reason),
		&reason);
}

/* device-stats PORT: as a list, for a name may come twice. */
json_t *probe_device_stats(struct probe *probe, const struct arguments *a)
{
	static struct mr_named_count counts[MAX_STATS];
	const uint32_t n =
		mr_port_device_stats(port_of(probe, a), counts, MAX_STATS);
	json_t *list = json_array();

	for (uint32_t i = 0; i < n && i < MAX_STATS; i++)
		json_array_append_new(list,
				      json_pack("[s, I]", counts[i].name,
						(json_int_t)counts[i].value));
	return json_pack("{s:b, s:o}", "ok", 1, "stats", list);
}

/* drop-capabilities: all of them, for good. */
json_t *probe_drop_capabilities(struct probe *probe, const struct arguments *a)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	const struct __user_cap_data_struct none[2] = { { 0 } };

	(void)probe, (void)a;
	return json_pack("{s:b}", "ok", syscall(SYS_capset, &head, none) == 0);
}
