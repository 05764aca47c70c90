/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzz target: requests to mr-brokerd, and its rules.
 *
 * The first byte says how many fds come with each request; requests follow, two
 * bytes of length before each. Interfaces that are asked for do not exist, so
 * nothing is opened. What begins with "rules" is a file of rules.
 */
#include <errno.h>
#include <string.h>

#include "fuzz.h"
#include "rules.h"
#include "lease/wire.h"

const struct fuzz_seed fuzz_seeds[] = {
	SEED("\0\x18\0\x18\0\0\0\2\0\1\0none\0\0\0\0\0\0\0\0\0\0\0\0"),
	SEED("\1\x18\0\x18\0\0\0\2\0\3\0\0\0\0\0\0\0\0\0\xdc\5\0\0\0\0\0\0"),
	SEED("\1\xff\xff"),
	/* RSS, UNSTEER, FILTER */
	SEED("\0\x5c\0\x5c\0\0\0\2\0\4\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0"),
	SEED("\0\x10\0\x10\0\0\0\2\0\6\0\5\0\0\0\0\0\0\0"),
	SEED("\3\x18\0\x18\0\0\0\2\0\7\0\1\0\0\0\0\0\0\0"
	     "\6\0\0\0\xff\xff\0\0"),
	SEED("rules:\n- user: 1\n  interface: eth*\n  memory: 1M\n"
	     "  filter: udp port 53\n  queues: 0-3\n  rss: yes\n"),
	SEED("rules:\n- {group: [root, 5], interface: [a, b], memory: 2G, "
	     "transmit: yes}\n"),
	{ NULL, 0 },
};

static int allow(void *opaque, const char *interface,
		 struct xdp_grant *ret_grant, struct mr_reason *reason)
{
	(void)opaque;
	(void)ret_grant;
	FUZZ_CHECK(strlen(interface) < IFNAMSIZ);
	FUZZ_CHECK(strlen(interface) > 0 && strchr(interface, '/') == NULL);
	return mr_fail(reason, -EPERM, "no");
}

static void check_rules(struct mr_ctx *ctx, const uint8_t *bytes, size_t n)
{
	const struct peer peer = { .uid = 1, .n_groups = 1 };
	struct mr_reason why = { "" };
	struct rules rules;

	if (rules_parse(ctx, "f", (const char *)bytes, n, &rules, &why) < 0) {
		FUZZ_CHECK(strncmp(why.text, "f:", 2) == 0);
		return;
	}
	for (uint32_t i = 0; i < rules.n_rules; i++) {
		const struct rule *rule = &rules.rules[i];

		FUZZ_CHECK(rule->queues[0] <= rule->queues[1]);
		FUZZ_CHECK(rule->max_bytes > 0 && rule->n_interfaces > 0);
		FUZZ_CHECK(rule->n_users + rule->n_groups > 0);
	}
	(void)rules_find(&rules, &peer, "eth0", &why);
	rules_free(&rules);
}

static void check_answer(const struct xdp_answer *answer, int err)
{
	const struct xdp_wire_answer *a = (const void *)answer->bytes;

	FUZZ_CHECK(answer->n_bytes == sizeof(*a) && answer->n_fds == 0);
	FUZZ_CHECK(a->head.n_bytes == sizeof(*a));
	/* Nothing was granted, so nothing is open. */
	FUZZ_CHECK(a->err < 0 && a->reason.text[0] != '\0');
	FUZZ_CHECK((err == -EPROTO) == (a->err == -EPROTO));
	FUZZ_CHECK(strchr(a->reason.text, '\n') == NULL);
}

/* One time in two, make the head and the lengths those of its type. */
static void repair(uint8_t *bytes, size_t n, uint32_t n_fds)
{
	struct xdp_wire_head *head = (void *)bytes;
	struct xdp_wire_open *o = (void *)bytes;
	struct xdp_wire_rss *r = (void *)bytes;
	struct xdp_wire_filter *f = (void *)bytes;

	if (n < sizeof(*head) || head->version % 2 != 0)
		return;
	head->n_bytes = (uint32_t)n;
	head->version = XDP_WIRE_VERSION;
	head->type %= XDP_WIRE_N_TYPES;
	if (head->type == XDP_WIRE_OPEN && n >= sizeof(*o)) {
		o->n_insns = (uint32_t)((n - sizeof(*o)) / sizeof(*o->insns));
		o->n_segments = n_fds;
	} else if (head->type == XDP_WIRE_RSS && n >= sizeof(*r)) {
		r->n_entries = (uint32_t)((n - sizeof(*r)) / sizeof(*r->table));
	} else if (head->type == XDP_WIRE_FILTER && n >= sizeof(*f)) {
		f->n_insns = (uint32_t)((n - sizeof(*f)) / sizeof(*f->insns));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	static struct mr_ctx *ctx;
	static _Alignas(8) uint8_t request[XDP_BROKER_MAX_BYTES];
	static struct xdp_answer answer;
	int fds[XDP_BROKER_MAX_FDS];
	struct xdp_served *served;
	uint32_t n_fds;
	int err;

	if (ctx == NULL)
		FUZZ_CHECK(mr_ctx_create(NULL, &ctx, NULL) == 0);
	if (n_bytes > 5 && memcmp(bytes, "rules", 5) == 0) {
		check_rules(ctx, bytes, n_bytes);
		return 0;
	}
	if (n_bytes == 0)
		return 0;
	n_fds = bytes[0] % 4;
	for (uint32_t i = 0; i < n_fds; i++)
		fds[i] = 0;
	served = mri_xdp_served_create(ctx, allow, NULL);
	for (size_t at = 1; at + 2 <= n_bytes;) {
		size_t n = bytes[at] | (size_t)bytes[at + 1] << 8;

		at += 2;
		n = n < n_bytes - at ? n : n_bytes - at;
		memcpy(request, bytes + at, n);
		repair(request, n, n_fds);
		at += n;
		err = mri_xdp_serve(served, request, n, fds, n_fds, &answer);
		check_answer(&answer, err);
		FUZZ_CHECK(mri_xdp_served_bytes(served) == 0);
	}
	mri_xdp_served_destroy(served);
	return 0;
}
