/* SPDX-License-Identifier: BSD-3-Clause */
/* Where frames were last seen: one line, cause and cure. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "net/tester_parts.h"

/* Where the frames that are sent here are expected back, and known again. */
static bool knows_losses(const struct tester *tester)
{
	return tester->n_sources > 0 && tester->n_receivers > 0 &&
	       !tester->config.is_unstamped;
}

/* A counter explains a loss if it has at least half of it. Where nobody knows
 * how many were lost, one frame of a thousand is worth a line. */
static bool is_cause(const struct tester *tester, const struct trial_result *r,
		     const struct trial_drop *drop)
{
	if (knows_losses(tester))
		return r->lost > 0 && drop->n >= r->lost - r->lost / 2;
	return drop->n > 0 && drop->n >= (r->sent + r->received) / 1000;
}

/* By a receiving port; a device has losses of both directions. */
static bool is_of_arrivals(const struct trial_drop *drop)
{
	return drop->is_receivers && strcmp(drop->side, "tx") != 0 &&
	       strncmp(drop->name, "tx", 2) != 0;
}

static bool is_of_departures(const struct trial_drop *drop)
{
	return strcmp(drop->side, "tx") == 0 ||
	       strncmp(drop->name, "tx", 2) == 0;
}

/* What the kernel's pauses cost never left: it is unsent, and none of those
 * that did and are missing. */
static bool tells_of(const struct tester *tester, const struct trial_drop *drop)
{
	if (knows_losses(tester) && strcmp(drop->name, "kernel_set_up") == 0)
		return false;
	return is_of_arrivals(drop) || is_of_departures(drop);
}

/* The largest loss that a port counted, if it explains what is missing; else
 * NULL. */
static const struct trial_drop *find_cause(const struct tester *tester,
					   const struct trial_result *result)
{
	const struct trial_drop *worst = NULL;

	for (uint32_t i = 0; i < result->n_drops; i++) {
		const struct trial_drop *drop = &result->drops[i];

		if (tells_of(tester, drop) &&
		    (worst == NULL || drop->n > worst->n))
			worst = drop;
	}
	return worst != NULL && is_cause(tester, result, worst) ? worst : NULL;
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

/* Of frames that another program sends. */
static void explain_silence(const struct tester *tester,
			    const struct trial_result *r, char *ret,
			    size_t n_bytes)
{
	struct mr_port_info info;

	snprintf(ret, n_bytes,
		 "%s received nothing in %.3g s: is the sender running, and "
		 "does what it sends come here (--dst-mac of tx)?",
		 name_of(tester, tester->rx[0], &info),
		 (double)r->whole_ns / 1e9);
}

bool tester_is_silent(const struct tester *tester, const struct trial_result *r)
{
	if (tester->n_receivers == 0 || (tester->n_sources > 0 && r->sent == 0))
		return false;
	return knows_losses(tester) ? r->unique == 0 : r->received == 0;
}

bool tester_explain(const struct tester *tester, const struct trial_result *r,
		    char *ret, size_t n_bytes)
{
	const struct trial_drop *cause = find_cause(tester, r);

	if (cause != NULL && is_of_arrivals(cause))
		snprintf(ret, n_bytes,
			 "the receiver was slower than the sender: %s dropped "
			 "%" PRIu64 " frames (%s); more --workers or --queues, "
			 "or a longer --ring",
			 cause->port, cause->n, cause->name);
	else if (cause != NULL)
		snprintf(ret, n_bytes,
			 "%s: %" PRIu64 " frames did not leave (%s)",
			 cause->port, cause->n, cause->name);
	else if (!tester_is_silent(tester, r))
		return false;
	else if (tester->n_sources == 0)
		explain_silence(tester, r, ret, n_bytes);
	else
		explain_nothing(tester, r, ret, n_bytes);
	return true;
}
