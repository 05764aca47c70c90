/* SPDX-License-Identifier: BSD-3-Clause */
/* Where frames were last seen: one line, cause and cure. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "net/tester_parts.h"

/* The largest loss that a port counted; NULL: none. */
static const struct trial_drop *worst_drop(const struct trial_result *result)
{
	const struct trial_drop *worst = NULL;

	for (uint32_t i = 0; i < result->n_drops; i++)
		if (worst == NULL || result->drops[i].n > worst->n)
			worst = &result->drops[i];
	return worst;
}

static const char *name_of(const struct tester *tester, uint32_t p,
			   struct mr_port_info *info)
{
	tester_info_of(tester, p, info);
	return info->name;
}

/* Frames that were given to the queues and did not leave them. */
static uint64_t n_pending(const struct tester *tester)
{
	struct mr_tx_stats stats = { .size = sizeof(stats) };
	uint64_t n = 0;

	for (uint32_t i = 0; i < tester->n_senders; i++) {
		mr_txq_stats(tester->senders[i].config.txq, &stats);
		n += stats.pending;
	}
	return n;
}

static void explain_nothing(const struct tester *tester,
			    const struct trial_result *r, char *ret,
			    size_t n_bytes)
{
	struct mr_port_info tx, rx;
	const char *from = name_of(tester, tester->tx[0], &tx);
	const char *to = name_of(tester, tester->rx[0], &rx);
	const uint64_t pending = n_pending(tester);

	/* A few are always somebody else's. */
	if (r->foreign > r->sent / 2)
		snprintf(ret, n_bytes,
			 "none of the %" PRIu64
			 " frames came back as sent, but "
			 "%s received %" PRIu64 " without our stamp: what is "
			 "between rewrites the end of frames, or they are "
			 "somebody else's",
			 r->sent, to, r->foreign);
	else if (tester->n_places == 0 && pending >= r->sent)
		snprintf(ret, n_bytes,
			 "%s took %" PRIu64 " frames and sent none: the device "
			 "does not transmit",
			 from, r->sent);
	else
		snprintf(
			ret, n_bytes,
			"%" PRIu64 " frames left %s and none reached %s, which "
			"counts no loss: there is no path between them, or "
			"what is between forwards nothing (--dst-mac says whom "
			"it is to forward to)",
			r->sent - pending, from, to);
}

bool tester_explain(const struct tester *tester, const struct trial_result *r,
		    char *ret, size_t n_bytes)
{
	const struct trial_drop *worst = worst_drop(r);

	if (worst != NULL && strcmp(worst->side, "tx") != 0 &&
	    tester->n_rx > 0) {
		snprintf(ret, n_bytes,
			 "the receiver was slower than the sender: %s dropped "
			 "%" PRIu64 " frames (%s); more --workers or --queues, "
			 "or a longer --ring",
			 worst->port, worst->n, worst->name);
		return true;
	}
	if (worst != NULL && strcmp(worst->side, "tx") == 0) {
		snprintf(ret, n_bytes,
			 "%s: %" PRIu64 " frames did not leave (%s)",
			 worst->port, worst->n, worst->name);
		return true;
	}
	if (tester->n_sources == 0 || tester->n_receivers == 0 ||
	    r->sent == 0 || r->unique > 0 || tester->config.is_unstamped)
		return false;
	explain_nothing(tester, r, ret, n_bytes);
	return true;
}
