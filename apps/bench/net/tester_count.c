/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes a result of the counters of threads and ports. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/tester.h"
#include "stream/stream.h"
#include "support/counter.h"

struct send_counts places_counts(const struct tester *tester)
{
	struct send_counts all = { 0 };

	for (uint32_t i = 0; i < tester->n_places; i++) {
		const struct sending_place *at = &tester->places[i];
		struct send_counts counts;

		at->ops->counts(at->place, &counts, NULL);
		all.sent += counts.sent;
		all.unsent += counts.unsent;
		all.bytes += counts.bytes;
		all.refused += counts.refused;
		if (counts.last_ns > all.last_ns)
			all.last_ns = counts.last_ns;
	}
	return all;
}

static void add_lateness_of_places(const struct tester *tester,
				   struct hist *ret)
{
	struct hist *hist = malloc(sizeof(*hist));

	for (uint32_t i = 0; hist != NULL && i < tester->n_places; i++) {
		const struct sending_place *at = &tester->places[i];
		struct send_counts counts;

		memset(hist, 0, sizeof(*hist));
		at->ops->counts(at->place, &counts, hist);
		hist_merge(ret, hist);
	}
	free(hist);
}

/* Read every loss counter of the user's ports; before: see drops_read(). */
static void read_drops(const struct tester *tester,
		       const struct trial_drop *before, struct drop_rows *ret)
{
	uint32_t receivers = 0;

	for (uint32_t r = 0; r < tester->n_rx; r++)
		receivers |= 1u << tester->rx[r];
	drops_read(ret, tester->plane.ports, tester->n_ports, receivers,
		   before);
}

static uint64_t tx_bytes(const struct tester *tester)
{
	struct mr_tx_stats stats = { .size = sizeof(stats) };
	uint64_t n = 0;

	for (uint32_t i = 0; i < tester->n_senders; i++) {
		mr_txq_stats(tester->senders[i].config.txq, &stats);
		n += stats.bytes;
	}
	return n;
}

static uint64_t rx_bytes(const struct tester *tester)
{
	struct mr_rx_stats stats = { .size = sizeof(stats) };
	uint64_t n = 0;

	for (uint32_t i = 0; i < tester->n_receivers; i++) {
		mr_rxq_stats(tester->receivers[i].rxq, &stats);
		n += stats.bytes;
	}
	return n;
}

void tester_count_before(struct tester *tester)
{
	struct drop_rows before = { tester->drops_before, 0, MAX_DROP_ROWS };

	read_drops(tester, NULL, &before);
	tester->tx_bytes_before = tx_bytes(tester);
	tester->rx_bytes_before = rx_bytes(tester);
}

uint64_t tester_n_sent(const struct tester *tester)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < tester->n_senders; i++)
		n += counter_get(&tester->senders[i].n_sent);
	return n + places_counts(tester).sent;
}

/* Lanes with something to report: if another program sends, those up to the
 * last that received frames. */
static uint32_t count_lanes(const struct tester *tester)
{
	uint32_t n = tester->n_sources > 0 ? tester->n_lanes : 1;

	for (uint32_t i = 0; i < tester->n_receivers; i++) {
		const uint32_t seen = __atomic_load_n(
			&tester->receivers[i].n_lanes, __ATOMIC_RELAXED);

		n = seen > n ? seen : n;
	}
	return n;
}

uint64_t tester_n_unique(const struct tester *tester)
{
	const uint32_t n_lanes = count_lanes(tester);
	uint64_t n = 0;

	for (uint32_t i = 0; i < tester->n_receivers; i++)
		for (uint32_t l = 0; l < n_lanes; l++)
			n += counter_get(
				&tester->receivers[i].tracks[l].unique);
	return n;
}

static bool are_places_done(const struct tester *tester)
{
	for (uint32_t i = 0; i < tester->n_places; i++)
		if (!__atomic_load_n(&tester->places[i].is_done,
				     __ATOMIC_ACQUIRE))
			return false;
	return true;
}

bool tester_is_sending(const struct tester *tester)
{
	for (uint32_t i = 0; i < tester->n_senders; i++)
		if (!__atomic_load_n(&tester->senders[i].is_done,
				     __ATOMIC_ACQUIRE))
			return true;
	return !are_places_done(tester);
}

/* The frames that a lane lost: of those sent, or, if another program sends, of
 * those up to the highest number received. */
static uint64_t lost_of(const struct tester *tester, uint64_t sent,
			uint64_t highest, uint64_t unique)
{
	const uint64_t n = tester->n_sources > 0 ? sent : highest;

	return n > unique ? n - unique : 0;
}

/* Add a lane's counters of all receivers and of its sender. */
static void add_lane(const struct tester *tester, uint32_t lane,
		     uint64_t n_sent, struct trial_lane *ret)
{
	uint64_t highest = 0, unique = 0;

	for (uint32_t i = 0; i < tester->n_receivers; i++) {
		const struct track *track = &tester->receivers[i].tracks[lane];
		const uint64_t next = counter_get(&track->next);
		const uint64_t gap = counter_get(&track->longest_gap);

		highest = next > highest ? next : highest;
		unique += counter_get(&track->unique);
		ret->duplicates += counter_get(&track->duplicates);
		ret->reordered += counter_get(&track->reordered);
		ret->too_old += counter_get(&track->too_old);
		if (tester->n_receivers == 1 && gap > ret->longest_gap)
			ret->longest_gap = gap;
	}
	ret->sent += n_sent;
	ret->unique += unique;
	ret->received = ret->unique + ret->duplicates + ret->too_old;
	if (tester->n_receivers > 0)
		ret->lost += lost_of(tester, n_sent, highest, unique);
}

static void count_rates(const struct tester *tester, struct trial_result *ret)
{
	uint64_t first = UINT64_MAX, last = 0, n_gaps;

	for (uint32_t i = 0; i < tester->n_receivers; i++) {
		const struct receiver *receiver = &tester->receivers[i];
		const uint64_t f = counter_get(&receiver->first_ns);
		const uint64_t l = counter_get(&receiver->last_ns);

		first = f < first ? f : first;
		last = l > last ? l : last;
	}
	/* There is one gap less than frames. */
	n_gaps = ret->sent;
	if (tester->orders.end_ns == UINT64_MAX && ret->sent > 0)
		n_gaps--;
	if (ret->sending_ns > 0)
		ret->tx_pps = (double)n_gaps * 1e9 / (double)ret->sending_ns;
	if (first < last && ret->all.unique > 1)
		ret->rx_pps = (double)(ret->all.unique - 1) * 1e9 /
			      (double)(last - first);
}

/* Count the frames that threads and queues accepted, as if all had left. */
static void count_accepted(const struct tester *tester,
			   struct trial_result *ret)
{
	const struct send_counts by_places = places_counts(tester);
	const uint32_t n_lanes = count_lanes(tester);

	ret->asked_pps = tester->orders.pps;
	ret->n_runs = tester->runs != NULL ? runs_n(tester->runs) : 0;
	ret->sent = tester_n_sent(tester);
	ret->unsent = by_places.unsent;
	for (uint32_t i = 0; i < tester->n_senders; i++)
		ret->unsent += counter_get(&tester->senders[i].n_unsent);
	ret->due = ret->sent + ret->unsent;
	ret->received = ret->foreign = 0;
	for (uint32_t i = 0; i < tester->n_receivers; i++) {
		ret->received += counter_get(&tester->receivers[i].n_received);
		ret->foreign += counter_get(&tester->receivers[i].n_foreign);
	}
	ret->all = (struct trial_lane){ 0 };
	for (uint32_t l = 0; l < n_lanes; l++)
		add_lane(tester, l, 0, &ret->all);
	/* Nobody knows how many frames are still on their way. */
	if (tester->n_sources > 0)
		ret->all.lost = 0;
	ret->tx_bytes =
		tx_bytes(tester) - tester->tx_bytes_before + by_places.bytes;
	ret->rx_bytes = rx_bytes(tester) - tester->rx_bytes_before;
}

/* The place of a source that is not a sender, else NULL. */
static const struct sending_place *place_of(const struct tester *tester,
					    uint32_t source)
{
	return source < tester->n_senders ?
		       NULL :
		       &tester->places[source - tester->n_senders];
}

/* The index in tx of the port that a source sends on. */
static uint32_t direction_of(const struct tester *tester, uint32_t source)
{
	const struct sending_place *at = place_of(tester, source);

	return at != NULL ? at->t : tester->sender_port[source];
}

/* Frames that were accepted but not sent, by index in tx. */
struct kept {
	uint64_t by_tx[MAX_PORTS];
	uint64_t n_no_room; /* of these, without room at full speed */
};

static void count_kept(const struct tester *tester,
		       const struct drop_rows *moved, struct kept *ret)
{
	const bool is_full_speed = tester->orders.pps == 0 &&
				   tester->orders.n_frames == UINT64_MAX;

	*ret = (struct kept){ .n_no_room = 0 };
	for (uint32_t t = 0; t < tester->n_tx; t++)
		if (tester->tx[t] < tester->n_ports)
			ret->by_tx[t] = drops_unsent(
				moved, tester->plane.ports[tester->tx[t]]);
	for (uint32_t i = 0; i < tester->n_places; i++) {
		const struct sending_place *at = &tester->places[i];
		struct send_counts counts;

		at->ops->counts(at->place, &counts, NULL);
		ret->by_tx[at->t] = counts.refused;
		if (is_full_speed)
			ret->n_no_room += counts.refused;
	}
}

static void judge_trial(const struct tester *tester, const struct kept *kept,
			struct trial_result *ret)
{
	const struct send_orders *orders = &tester->orders;
	uint64_t n = 0;

	for (uint32_t t = 0; t < tester->n_tx; t++)
		n += kept->by_tx[t];
	trial_judge(ret, n, kept->n_no_room,
		    orders->end_ns != UINT64_MAX ||
			    orders->n_frames != UINT64_MAX);
	count_rates(tester, ret);
}

void tester_count_so_far(const struct tester *tester, struct trial_result *ret)
{
	struct trial_drop rows[MAX_DROP_ROWS];
	struct drop_rows moved = { rows, 0, MAX_DROP_ROWS };
	struct kept kept;

	count_accepted(tester, ret);
	read_drops(tester, tester->drops_before, &moved);
	count_kept(tester, &moved, &kept);
	judge_trial(tester, &kept, ret);
}

static uint64_t lane_accepted(const struct tester *tester, uint32_t lane)
{
	const uint32_t n = tester->n_sources;
	const struct sending_place *at;

	if (n == 0)
		return 0;
	at = place_of(tester, lane % n);
	return at != NULL ?
		       at->ops->n_sent(at->place, lane / n) :
		       builder_n_sent(tester->builders[lane % n], lane / n);
}

/* Frames of a lane that did not arrive; all of them if nothing receives. */
static uint64_t n_missing(const struct tester *tester, uint32_t lane,
			  uint64_t n_sent)
{
	struct trial_lane sum = { 0 };

	if (tester->n_receivers == 0)
		return n_sent;
	add_lane(tester, lane, n_sent, &sum);
	return sum.lost;
}

/*
 * Subtract the frames that never left from those that a port's lanes sent. The
 * port does not report which they were, so divide them among the lanes in
 * proportion to the frames of each that did not arrive.
 */
static void take_kept(const struct tester *tester, uint32_t t, uint32_t n_lanes,
		      uint64_t *lane_sent, uint64_t *n_kept)
{
	uint64_t n_all = 0, n_left;

	for (uint32_t l = 0; l < n_lanes; l++)
		if (direction_of(tester, l % tester->n_sources) == t)
			n_all += n_missing(tester, l, lane_sent[l]);
	/* A device also counts frames of other programs. */
	if (*n_kept > n_all)
		*n_kept = n_all;
	n_left = *n_kept;
	for (uint32_t l = 0; l < n_lanes && n_left > 0; l++) {
		uint64_t n, part;

		if (direction_of(tester, l % tester->n_sources) != t)
			continue;
		n = n_missing(tester, l, lane_sent[l]);
		part = n == n_all ? n_left :
				    (uint64_t)((double)n_left * (double)n /
					       (double)n_all);
		lane_sent[l] -= part;
		n_left -= part;
		n_all -= n;
	}
}

/* Count by stream; of other programs, each lane of each run. */
static void count_streams(const struct tester *tester, uint32_t n_lanes,
			  const uint64_t *lane_sent, struct trial_result *ret)
{
	const uint32_t n_sources =
		tester->n_sources > 0 ? tester->n_sources : 1;

	ret->all = (struct trial_lane){ 0 };
	for (uint32_t l = 0; l < n_lanes; l++) {
		struct trial_lane *lane = &ret->streams[l / n_sources];

		add_lane(tester, l, lane_sent[l], lane);
		add_lane(tester, l, lane_sent[l], &ret->all);
		lane->stream = l / n_sources;
		if (tester->n_sources > 0 || runs_n(tester->runs) == 0)
			continue;
		runs_find(tester->runs, l, &lane->run, &lane->stream);
		lane->run++;
	}
	for (uint32_t i = 0; i < n_lanes / n_sources; i++) {
		struct trial_lane *lane = &ret->streams[i];

		/* Some lanes between those of two runs are unused. */
		if (ret->n_runs <= 1 || lane->received > 0)
			ret->streams[ret->n_streams++] = *lane;
	}
}

static uint64_t n_unsent(const struct tester *tester, uint32_t source)
{
	const struct sending_place *at = place_of(tester, source);
	struct send_counts counts;

	if (at == NULL)
		return counter_get(&tester->senders[source].n_unsent);
	at->ops->counts(at->place, &counts, NULL);
	return counts.unsent;
}

static void copy_name(const struct tester *tester, uint32_t number, char *ret,
		      size_t n_bytes)
{
	struct mr_port_info info;
	struct mr_link link;

	tester_port(tester, number, &info, &link);
	snprintf(ret, n_bytes, "%s", info.name);
}

/* Add the latencies of frames received on the port where a direction ends. */
static void add_latency(const struct tester *tester, uint32_t r,
			struct hist *hist, struct trial_direction *ret)
{
	memset(hist, 0, sizeof(*hist));
	for (uint32_t i = 0; i < tester->n_receivers; i++)
		if (tester->receiver_port[i] == r)
			hist_merge(hist, tester->latency[i]);
	ret->n_latencies = hist->n;
	if (hist->n == 0)
		return;
	ret->latency_p50_ns = hist_at(hist, 50);
	ret->latency_p99_ns = hist_at(hist, 99);
	ret->latency_max_ns = hist->max;
}

/* Count, for each pair of ports, what one sent and the other received. */
static int count_directions(const struct tester *tester, uint32_t n_lanes,
			    const uint64_t *lane_sent, const struct kept *kept,
			    struct trial_result *ret)
{
	const uint32_t n = tester->n_tx;
	struct trial_direction *rows;
	struct hist *hist;

	if (n < 2 || tester->n_rx != n)
		return 0;
	rows = calloc(n, sizeof(*rows));
	hist = malloc(sizeof(*hist));
	if (rows == NULL || hist == NULL) {
		free(rows);
		free(hist);
		return -ENOMEM;
	}
	for (uint32_t t = 0; t < n; t++) {
		copy_name(tester, tester->tx[t], rows[t].from,
			  sizeof(rows[t].from));
		copy_name(tester, tester->rx[t], rows[t].to,
			  sizeof(rows[t].to));
		add_latency(tester, t, hist, &rows[t]);
		rows[t].unsent = kept->by_tx[t];
	}
	for (uint32_t s = 0; s < tester->n_sources; s++)
		rows[direction_of(tester, s)].unsent += n_unsent(tester, s);
	for (uint32_t l = 0; l < n_lanes; l++)
		add_lane(
			tester, l, lane_sent[l],
			&rows[direction_of(tester, l % tester->n_sources)].sum);
	free(hist);
	ret->directions = rows;
	ret->n_directions = n;
	return 0;
}

static void count_threads(const struct tester *tester, struct trial_result *ret)
{
	uint64_t busy = 0, all = 0;

	for (uint32_t i = 0; i < tester->n_senders; i++)
		hist_merge(&ret->lateness, tester->lateness[i]);
	if (tester->orders.pps > 0)
		add_lateness_of_places(tester, &ret->lateness);
	for (uint32_t i = 0; i < tester->n_receivers; i++)
		if (tester->receivers[i].latency != NULL)
			hist_merge(&ret->latency, tester->latency[i]);
	tester_explain_tail(tester, ret);
	for (uint32_t w = 0; w < tester->plane.n_workers; w++) {
		busy += tester->seats[w].busy_ns;
		all += tester->seats[w].all_ns;
		ret->user_ns += tester->seats[w].user_ns;
		ret->system_ns += tester->seats[w].system_ns;
	}
	ret->cpu_share = all > 0 ? (double)busy / (double)all : 0;
}

/* What places were refused by their devices. Returns how many rows. */
static uint32_t list_drops_of_places(const struct tester *tester,
				     struct trial_drop *ret, uint32_t room)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < tester->n_places; i++) {
		const struct sending_place *at = &tester->places[i];
		struct mr_named_count lost[16];
		struct mr_port_info info = { .size = sizeof(info) };
		const uint32_t n_lost = at->ops->drops(at->place, lost, 16);

		at->ops->info(at->place, &info);
		for (uint32_t d = 0; d < n_lost && n < room; d++) {
			struct trial_drop *row = &ret[n];

			if (lost[d].value == 0)
				continue;
			*row = (struct trial_drop){ .side = "tx",
						    .n = lost[d].value,
						    .is_departure = true };
			snprintf(row->port, sizeof(row->port), "%s", info.name);
			snprintf(row->name, sizeof(row->name), "%s",
				 lost[d].name);
			n++;
		}
	}
	return n;
}

/* Count what left, by lane, and all that depends on it. */
static int count_left(const struct tester *tester, struct trial_result *ret)
{
	const uint32_t n_lanes = count_lanes(tester);
	uint64_t *const lane_sent = calloc(n_lanes, sizeof(*lane_sent));
	struct drop_rows moved = { ret->drops, 0, MAX_DROP_ROWS };
	struct kept kept;
	int err;

	ret->streams = calloc(n_lanes, sizeof(ret->streams[0]));
	if (lane_sent == NULL || ret->streams == NULL) {
		free(lane_sent);
		return -ENOMEM;
	}
	read_drops(tester, tester->drops_before, &moved);
	count_kept(tester, &moved, &kept);
	ret->n_drops =
		moved.n + list_drops_of_places(tester, ret->drops + moved.n,
					       MAX_DROP_ROWS - moved.n);
	for (uint32_t l = 0; l < n_lanes; l++)
		lane_sent[l] = lane_accepted(tester, l);
	for (uint32_t t = 0; t < tester->n_tx; t++)
		if (kept.by_tx[t] > 0)
			take_kept(tester, t, n_lanes, lane_sent,
				  &kept.by_tx[t]);
	judge_trial(tester, &kept, ret);
	count_streams(tester, n_lanes, lane_sent, ret);
	err = count_directions(tester, n_lanes, lane_sent, &kept, ret);
	free(lane_sent);
	return err;
}

int tester_count_all(struct tester *tester, struct trial_result *ret)
{
	ret->drops = calloc(MAX_DROP_ROWS, sizeof(*ret->drops));
	if (ret->drops == NULL)
		return -ENOMEM;
	count_accepted(tester, ret);
	count_threads(tester, ret);
	return count_left(tester, ret);
}

void tester_latency_since(const struct tester *tester, struct hist *before,
			  struct hist *ret)
{
	for (uint32_t i = 0; i < tester->n_receivers; i++)
		if (tester->receivers[i].latency != NULL)
			hist_since(tester->receivers[i].latency, &before[i],
				   ret);
}
