/* SPDX-License-Identifier: BSD-3-Clause */
/* `mrctl upgrade`: the stations that were learned, and the counters. */
#include <errno.h>
#include <stdlib.h>

#include <millrace/experimental/parcel.h>

#include "session.h"

enum {
	FDB_LAYOUT = 1,     /* of struct station */
	STATS_LAYOUT = 1,   /* of struct forward_stats */
	OFFLOAD_LAYOUT = 1, /* of struct offload_stats */
};

struct station {
	uint64_t mac;
	uint32_t port;
	uint32_t seen_s; /* of CLOCK_MONOTONIC, which all processes share */
};

static void put_stations(const struct fdb *fdb, struct mr_parcel *parcel)
{
	const uint32_t n_places = fdb_n_places(fdb);
	struct station *stations = calloc(n_places, sizeof(stations[0]));
	uint32_t n = 0;

	for (uint32_t i = 0; stations != NULL && i < n_places; i++) {
		const uint64_t word = fdb_word(fdb, i);

		if (word != 0)
			stations[n++] = (struct station){ fdb_word_mac(word),
							  fdb_word_port(word),
							  fdb_seen_s(fdb, i) };
	}
	mr_parcel_put(parcel, "fdb", FDB_LAYOUT, stations,
		      n * sizeof(stations[0]));
	free(stations);
}

/* The sum of all workers: there may be another number of them. */
static struct forward_stats sum_stats(const struct session *session)
{
	struct forward_stats sum = { 0 };
	uint64_t *to = (uint64_t *)&sum;

	for (uint32_t w = 0; w < session->plane.n_workers; w++) {
		const uint64_t *from =
			(const uint64_t *)&session->forwarders[w].stats;

		for (size_t i = 0; i < sizeof(sum) / sizeof(*to); i++)
			to[i] += from[i];
	}
	return sum;
}

void session_put_state(void *app, struct mr_parcel *parcel)
{
	const struct session *session = app;
	const struct forward_stats stats = sum_stats(session);

	mr_parcel_put(parcel, "stats", STATS_LAYOUT, &stats, sizeof(stats));
	/* Of --count. */
	mr_parcel_put(parcel, "n_frames", 0, &session->shared.n_frames,
		      sizeof(session->shared.n_frames));
	mr_parcel_put(parcel, "offload", OFFLOAD_LAYOUT,
		      &session->offload_stats, sizeof(session->offload_stats));
	if (session->fdb == NULL)
		return;
	put_stations(session->fdb, parcel);
	if (session->offload != NULL)
		offload_put(session->offload, parcel);
}

int session_take_state(void *app, struct mr_parcel *parcel,
		       struct mr_reason *ret_why)
{
	struct session *session = app;
	const struct station *stations;
	const void *bytes = NULL;
	size_t n = 0;
	int err = mr_parcel_get(parcel, "stats", STATS_LAYOUT,
				&session->forwarders[0].stats,
				sizeof(session->forwarders[0].stats), ret_why);

	if (err == 0)
		err = mr_parcel_get(parcel, "offload", OFFLOAD_LAYOUT,
				    &session->offload_stats,
				    sizeof(session->offload_stats), ret_why);
	if (err == 0)
		err = mr_parcel_get(parcel, "n_frames", 0,
				    &session->shared.n_frames,
				    sizeof(session->shared.n_frames), ret_why);
	if (err < 0 || session->fdb == NULL)
		return err;
	err = mr_parcel_find(parcel, "fdb", FDB_LAYOUT, &bytes, &n, ret_why);
	if (err < 0)
		return err == -ENOENT ? 0 : err; /* it was in another mode */
	stations = bytes;
	for (size_t i = 0; i < n / sizeof(stations[0]); i++)
		if (stations[i].port < session->plane.n_ports)
			fdb_learn(session->fdb, stations[i].mac,
				  stations[i].port, stations[i].seen_s);
	return session->offload == NULL ?
		       0 :
		       offload_take(session->offload, parcel, ret_why);
}
