/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules for what the forwarder has decided. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "forward.h"
#include "offload.h"

enum {
	QUIET_NS = 20000000,
	FORCE_NS = 1000000000,
	PAUSE_NS = 10000000, /* between two looks at all addresses */
};

/* A rule for a place of the forwarding database. */
struct station {
	uint64_t word;   /* that it was added for */
	uint64_t new_ns; /* when it was added */
	uint32_t id;
	bool is_active;
	bool has_rule;  /* atomic */
	bool has_moved; /* atomic: its rule was made inactive */
};

struct offload {
	struct mr_rules *rules;
	struct fdb *fdb;
	uint32_t n_ports;
	uint32_t n_places;
	struct station *stations; /* by place */
	uint64_t n_changes;       /* of the database, when last looked at */
	uint64_t looked_ns;       /* when that was */
	uint64_t n_moved;         /* atomic: times that has_moved was set */
	struct offload_stats stats;
};

static int add_default_rules(struct offload *offload, enum mode mode,
			     struct mr_reason *ret_error)
{
	for (uint32_t i = 0; i < offload->n_ports; i++) {
		const struct mr_rule rule = {
			.match = MR_RULE_ANY,
			.action = mode == MODE_DROP ? MR_RULE_DROP :
						      MR_RULE_FORWARD,
			.port = (uint16_t)i,
			.to = (uint16_t)(mode == MODE_DROP ? i :
							     forward_peer(i)),
		};
		uint32_t id;

		if (mr_rules_add(offload->rules, &rule, 1, &id) != 1)
			return fail_with(ret_error, -EIO,
					 "--offload: port %u accepts no rule",
					 i);
		mr_rules_set(offload->rules, id, rule.to, true);
		offload->stats.n_active++;
	}
	return 0;
}

/* By a worker: from now on, workers handle frames from and to the address. */
static void note_moved(void *opaque, uint32_t place, uint32_t port)
{
	struct offload *offload = opaque;
	struct station *station = &offload->stations[place];

	if (__atomic_load_n(&station->has_rule, __ATOMIC_ACQUIRE))
		mr_rules_set(offload->rules,
			     __atomic_load_n(&station->id, __ATOMIC_RELAXED),
			     port, false);
	__atomic_store_n(&station->has_moved, true, __ATOMIC_RELEASE);
	__atomic_add_fetch(&offload->n_moved, 1, __ATOMIC_RELEASE);
}

static int watch_addresses(struct offload *offload, struct fdb *fdb,
			   struct mr_reason *ret_error)
{
	offload->fdb = fdb;
	offload->n_places = fdb_n_places(fdb);
	offload->stations =
		calloc(offload->n_places, sizeof(offload->stations[0]));
	if (offload->stations == NULL)
		return fail_with(ret_error, -ENOMEM,
				 "no memory for the rules of %u addresses",
				 offload->n_places);
	fdb_watch(fdb, note_moved, offload);
	return 0;
}

int offload_open(struct offload **ret_offload, const struct options *options,
		 struct mr_port *const *ports, uint32_t n_ports,
		 struct fdb *fdb, bool is_taken_over,
		 struct mr_reason *ret_error)
{
	const struct mr_rules_config config = {
		.size = sizeof(config),
		.n_ports = n_ports,
		.ports = ports,
		.n_max = fdb != NULL ? options->fdb_limit : n_ports,
		.hands_over = 1,
	};
	struct offload *offload;
	struct mr_reason why;
	int err = offload_check_ports(
		options->plane.program, options->offload, ports, n_ports,
		fdb != NULL ? MR_RULE_STATION : MR_RULE_ANY,
		options->mode != MODE_DROP, ret_error);

	if (err <= 0)
		return err;
	offload = calloc(1, sizeof(*offload));
	if (offload == NULL)
		return fail_with(ret_error, -ENOMEM, "no memory for rules");
	offload->n_ports = n_ports;
	if (mr_rules_open(&config, &offload->rules, &why) < 0) {
		free(offload);
		return offload_refuse(options->plane.program, options->offload,
				      why.text, ret_error);
	}
	if (fdb != NULL)
		err = watch_addresses(offload, fdb, ret_error);
	else if (!is_taken_over) /* it has them */
		err = add_default_rules(offload, options->mode, ret_error);
	else
		offload->stats.n_active = n_ports;
	if (err < 0) {
		offload_close(offload);
		return err;
	}
	*ret_offload = offload;
	return 1;
}

/* ---- from one process to the next ---- */

enum { STATIONS_LAYOUT = 1, COUNTS_LAYOUT = 1 };

/* A rule of a station that was learned. */
struct kept_rule {
	uint64_t word, new_ns;
	uint32_t id, is_active;
};

static int compare_kept(const void *a, const void *b)
{
	const struct kept_rule *x = a, *y = b;

	return (x->word > y->word) - (x->word < y->word);
}

void offload_put(const struct offload *offload, struct mr_parcel *parcel)
{
	struct kept_rule *kept = calloc(offload->n_places + 1, sizeof(kept[0]));
	uint32_t n = 0;

	for (uint32_t i = 0; kept != NULL && i < offload->n_places; i++) {
		const struct station *station = &offload->stations[i];

		if (station->has_rule)
			kept[n++] = (struct kept_rule){ station->word,
							station->new_ns,
							station->id,
							station->is_active };
	}
	if (kept != NULL)
		qsort(kept, n, sizeof(kept[0]), compare_kept);
	/* Without memory the entry is missing, and the state is refused. */
	if (kept != NULL)
		mr_parcel_put(parcel, "rules", STATIONS_LAYOUT, kept,
			      n * sizeof(kept[0]));
	free(kept);
}

int offload_take(struct offload *offload, const struct mr_parcel *parcel,
		 struct mr_reason *ret_error)
{
	const void *kept = NULL;
	size_t n_bytes = 0;
	const int err = mr_parcel_find(parcel, "rules", STATIONS_LAYOUT, &kept,
				       &n_bytes, ret_error);
	uint32_t n_found = 0;

	if (err < 0)
		return err;
	for (uint32_t i = 0; i < offload->n_places; i++) {
		const struct kept_rule wanted = { fdb_word(offload->fdb, i), 0,
						  0, 0 };
		const struct kept_rule *found =
			bsearch(&wanted, kept, n_bytes / sizeof(wanted),
				sizeof(wanted), compare_kept);
		struct station *station = &offload->stations[i];

		if (wanted.word == 0 || found == NULL)
			continue;
		*station = (struct station){ .word = found->word,
					     .new_ns = found->new_ns,
					     .id = found->id,
					     .is_active = found->is_active,
					     .has_rule = true };
		offload->stats.n_active += found->is_active;
		offload->stats.n_pending += !found->is_active;
		n_found++;
	}
	return n_found == n_bytes / sizeof(struct kept_rule) ?
		       0 :
		       fail_with(ret_error, -EPROTO,
				 "the state has rules for unknown stations");
}

void offload_close(struct offload *offload)
{
	if (offload == NULL)
		return;
	if (offload->fdb != NULL)
		fdb_watch(offload->fdb, NULL, NULL);
	mr_rules_close(offload->rules);
	free(offload->stations);
	free(offload);
}

/* Whether there was room for it. */
static bool add_rule(struct offload *offload, struct station *station,
		     uint64_t word, uint64_t now_ns)
{
	uint32_t id;
	struct mr_rule rule = {
		.match = MR_RULE_STATION,
		.to = (uint16_t)fdb_word_port(word),
	};

	fdb_mac_bytes(fdb_word_mac(word), rule.mac);
	if (mr_rules_add(offload->rules, &rule, 1, &id) != 1)
		return false;
	__atomic_store_n(&station->id, id, __ATOMIC_RELAXED);
	station->word = word;
	station->new_ns = now_ns;
	station->is_active = false;
	__atomic_store_n(&station->has_rule, true, __ATOMIC_RELEASE);
	offload->stats.n_pending++;
	return true;
}

static void remove_rule(struct offload *offload, struct station *station)
{
	if (!station->has_rule)
		return;
	__atomic_store_n(&station->has_rule, false, __ATOMIC_RELEASE);
	mr_rules_remove(offload->rules, &station->id, 1);
	if (station->is_active)
		offload->stats.n_active--;
	else
		offload->stats.n_pending--;
}

/* Make it active if it has been quiet, or busy for long. */
static void consider_rule(struct offload *offload, uint32_t place,
			  uint64_t now_ns)
{
	struct station *station = &offload->stations[place];
	struct mr_rule_stats stats;
	bool is_quiet;

	mr_rules_read(offload->rules, &station->id, 1, &stats);
	is_quiet = now_ns >= station->new_ns + QUIET_NS &&
		   (int64_t)(now_ns - stats.held_ns) >= QUIET_NS;
	if (!is_quiet && now_ns < station->new_ns + FORCE_NS)
		return;
	mr_rules_set(offload->rules, station->id, fdb_word_port(station->word),
		     1);
	/*
	 * It may have moved meanwhile: then note_moved() came too early. All
	 * four accesses are sequentially consistent: the worker's to the word
	 * and the rule, and ours to the rule and the word.
	 */
	if (fdb_word(offload->fdb, place) != station->word) {
		mr_rules_set(offload->rules, station->id,
			     fdb_word_port(station->word), false);
		return;
	}
	station->is_active = true;
	offload->stats.forced += !is_quiet;
	offload->stats.n_active++;
	offload->stats.n_pending--;
}

static void remove_old(struct offload *offload)
{
	for (uint32_t i = 0; i < offload->n_places; i++) {
		struct station *station = &offload->stations[i];
		const bool has_moved = __atomic_exchange_n(
			&station->has_moved, false, __ATOMIC_ACQUIRE);

		if (has_moved || fdb_word(offload->fdb, i) != station->word)
			remove_rule(offload, station);
	}
}

/* How many addresses are left without a rule. */
static uint64_t add_new(struct offload *offload, uint64_t now_ns)
{
	uint64_t n_left = 0;

	for (uint32_t i = 0; i < offload->n_places; i++) {
		struct station *station = &offload->stations[i];
		const uint64_t word = fdb_word(offload->fdb, i);

		if (!station->has_rule && word != 0)
			n_left += !add_rule(offload, station, word, now_ns);
		else if (station->has_rule && !station->is_active)
			consider_rule(offload, i, now_ns);
	}
	return n_left;
}

void offload_poll(struct offload *offload, uint64_t now_ns)
{
	struct fdb_stats fdb;
	uint64_t n_changes;

	mr_rules_poll(offload->rules);
	if (offload->fdb == NULL)
		return;
	fdb_stats(offload->fdb, &fdb);
	n_changes = fdb.learned + fdb.aged +
		    __atomic_load_n(&offload->n_moved, __ATOMIC_ACQUIRE);
	if ((n_changes == offload->n_changes && offload->stats.n_pending == 0 &&
	     offload->stats.full == 0) ||
	    now_ns < offload->looked_ns + PAUSE_NS)
		return;
	offload->n_changes = n_changes;
	offload->looked_ns = now_ns;
	/* First: a rule that goes makes room for another. */
	remove_old(offload);
	offload->stats.full = add_new(offload, now_ns);
}

void offload_stop(struct offload *offload)
{
	mr_rules_stop(offload->rules);
}

int offload_fd(const struct offload *offload)
{
	return mr_rules_fd(offload->rules);
}

void offload_refresh(struct offload *offload)
{
	for (uint32_t i = 0; i < offload->n_places; i++) {
		const struct station *station = &offload->stations[i];
		struct mr_rule_stats stats;

		if (!station->has_rule)
			continue;
		mr_rules_read(offload->rules, &station->id, 1, &stats);
		if (stats.seen_ns != 0)
			fdb_refresh(offload->fdb, i,
				    (uint32_t)(stats.seen_ns / 1000000000u));
	}
}

void offload_stats(struct offload *offload, struct offload_stats *ret_stats)
{
	*ret_stats = offload->stats;
	ret_stats->counts = offload_count(offload->rules, offload->n_ports);
}
