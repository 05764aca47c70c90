/* SPDX-License-Identifier: BSD-3-Clause */
/* Hand over a port: spec, counters and settings. The driver adds the rest. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "pool/hand_over.h"
#include "pool/pool.h"
#include "port/events.h"
#include "port/hand_over.h"
#include "port/offload.h"
#include "port/open.h"

/* Layout versions of the library's structs. */
enum {
	SPEC_LAYOUT = 1,
	SETTINGS_LAYOUT = 1,
	KEPT_LAYOUT = 1,
	STATS_LAYOUT = 1,
};

static void enter(struct mr_parcel *parcel, uint32_t i)
{
	char folder[MR_PARCEL_NAME_BYTES];

	snprintf(folder, sizeof(folder), "port/%u", i);
	mr_parcel_enter(parcel, folder);
}

static struct mri_events *events_of(const struct mr_port *port)
{
	return port->events;
}

static struct mri_kept *kept_of(const struct mr_port *port)
{
	return &events_of(port)->kept;
}

void mri_port_enter(const struct mr_port *port, struct mr_parcel *parcel)
{
	enter(parcel, events_of(port)->number);
}

/* The spec has another one than the port. */
static void set_filter(struct mr_port *port)
{
	struct mr_reason why;
	struct mr_spec spec;

	if (mri_spec_parse(&spec, kept_of(port)->spec, &why) < 0 ||
	    mr_port_set_filter(port, mr_spec_get(&spec, "filter"), &why) < 0)
		mr_log(port->ctx, MR_LOG_WARNING,
		       "%s; it has the filter of the process before", why.text);
}

void mri_port_own(struct mr_port *port)
{
	port->is_away = 0;
	events_of(port)->parcel = NULL;
	if (events_of(port)->must_filter)
		set_filter(port);
}

int mri_port_offer(struct mr_port *port, uint32_t i, struct mr_parcel *parcel,
		   struct mr_reason *reterr_reason)
{
	const struct mr_hand_over_ops *ops = port->driver->hand_over;
	const char *const spec = kept_of(port)->spec;
	const char *const filter = kept_of(port)->settings.filter;
	int err;

	if (ops == NULL)
		return mr_fail(reterr_reason, -ENOTSUP,
			       "%s: a port of driver %s cannot be handed over "
			       "to another process",
			       port->info->name, port->driver->name);
	enter(parcel, i);
	mr_parcel_put(parcel, "spec", SPEC_LAYOUT, spec, strlen(spec) + 1);
	if (filter != NULL) /* in place of the spec's */
		mr_parcel_put(parcel, "filter", SPEC_LAYOUT, filter,
			      strlen(filter) + 1);
	err = ops->offer(port, parcel, reterr_reason);
	if (err == 0 && port->rules != NULL && port->rules_idx == 0)
		err = mri_rules_offer(port->rules, parcel, reterr_reason);
	mr_parcel_enter(parcel, "");
	return err;
}

/* Whether two specs are of one port. Its filter can be set later. */
static bool is_same(const struct mr_spec *wanted, const struct mr_spec *offered,
		    const struct mr_driver *driver)
{
	if (strcmp(wanted->driver, offered->driver) != 0 ||
	    strcmp(wanted->device, offered->device) != 0 ||
	    wanted->n_options != offered->n_options)
		return false;
	for (uint32_t i = 0; i < wanted->n_options; i++) {
		const char *const key = offered->options[i].key;

		if (strcmp(wanted->options[i].key, key) != 0 ||
		    ((driver->set_filter == NULL || strcmp(key, "filter") != 0) &&
		     strcmp(wanted->options[i].value,
			    offered->options[i].value) != 0))
			return false;
	}
	return true;
}

/* A text of the offer; NULL: it has none. */
static const char *find_text(const struct mr_parcel *parcel, const char *name)
{
	const void *text = NULL;
	size_t n = 0;

	if (mr_parcel_find(parcel, name, SPEC_LAYOUT, &text, &n, NULL) < 0 ||
	    n == 0 || ((const char *)text)[n - 1] != '\0')
		return NULL;
	return text;
}

static int check_spec(const struct mr_parcel *parcel, const char *text,
		      const struct mr_spec *wanted,
		      const struct mr_driver *driver, bool *ret_has_filter,
		      struct mr_reason *reterr_reason)
{
	const char *const spec = find_text(parcel, "spec");
	const char *filter = find_text(parcel, "filter");
	const char *const wanted_filter = mr_spec_get(wanted, "filter");
	struct mr_spec offered;
	int err;

	if (spec == NULL)
		return mr_fail(reterr_reason, -EPROTO,
			       "%s: the state has no spec", text);
	err = mri_spec_parse(&offered, spec, reterr_reason);
	if (err < 0)
		return err;
	if (!is_same(wanted, &offered, driver))
		return mr_fail(reterr_reason, -EINVAL,
			       "%s: the running data plane has %s instead: "
			       "this needs a restart",
			       text, spec);
	if (driver->hand_over == NULL)
		return mr_fail(reterr_reason, -ENOTSUP,
			       "%s: a port of driver %s cannot be taken over",
			       text, driver->name);
	if (filter == NULL)
		filter = mr_spec_get(&offered, "filter");
	*ret_has_filter = wanted_filter == NULL ||
			  strcmp(wanted_filter, filter) == 0;
	return 0;
}

int mri_port_take(struct mr_ctx *ctx, const char *text,
		  const struct mr_port_config *config, uint32_t i,
		  struct mr_parcel *parcel, struct mr_port **ret_port,
		  struct mr_reason *reterr_reason)
{
	const struct mr_driver *driver;
	struct mr_spec spec;
	struct mr_port *port = NULL;
	uint32_t n_pages;
	bool has_filter = true;
	int err;

	enter(parcel, i);
	err = mri_port_read(ctx, text, config->pool->page_bytes, &spec, &driver,
			    &n_pages, reterr_reason);
	if (err == 0)
		err = check_spec(parcel, text, &spec, driver, &has_filter,
				 reterr_reason);
	if (err == 0)
		err = mri_port_make(ctx, driver, config, &spec, text, &port,
				    reterr_reason);
	if (err == 0) {
		port->is_away = 1;
		events_of(port)->parcel = parcel;
		events_of(port)->number = i;
		events_of(port)->must_filter = !has_filter;
		err = mri_port_start(port, &spec, n_pages, parcel,
				     reterr_reason);
		if (err < 0)
			mri_port_free(port);
	}
	if (err == 0)
		*ret_port = port;
	mr_parcel_enter(parcel, "");
	return err;
}

/* ---- what is known at the end ---- */

static void put_settings(const struct mr_port *port, struct mr_parcel *parcel)
{
	const struct mri_kept *kept = kept_of(port);
	const struct mri_settings *set = &kept->settings;
	uint64_t words[2 * MRI_N_SETTINGS];

	for (uint32_t i = 0; i < MRI_N_SETTINGS; i++) {
		words[i] = set->is_made[i];
		words[MRI_N_SETTINGS + i] = set->values[i];
	}
	mr_parcel_put(parcel, "settings", SETTINGS_LAYOUT, words,
		      sizeof(words));
	if (set->macs != NULL)
		mr_parcel_put(parcel, "macs", SETTINGS_LAYOUT, set->macs,
			      set->n_macs * sizeof(set->macs[0]));
	if (set->filter != NULL)
		mr_parcel_put(parcel, "filter", SETTINGS_LAYOUT, set->filter,
			      strlen(set->filter) + 1);
	mr_parcel_put(parcel, "kept/rx", KEPT_LAYOUT, &kept->rx,
		      sizeof(kept->rx));
	mr_parcel_put(parcel, "kept/tx", KEPT_LAYOUT, &kept->tx,
		      sizeof(kept->tx));
	mr_parcel_put(parcel, "kept/drops", KEPT_LAYOUT, kept->drops,
		      kept->n_drops * sizeof(kept->drops[0]));
}

/* A frame that waits for the driver is not handed over. */
static struct mr_tx_stats tx_stats_of(const struct mr_txq *txq)
{
	struct mr_tx_stats stats = txq->stats;
	const uint32_t n_held = mri_offload_n_held(txq);

	stats.accepted += n_held;
	stats.drops[MR_TX_DROP_DEVICE] += n_held;
	return stats;
}

static void put_stats(const struct mr_port *port, struct mr_parcel *parcel)
{
	char name[MR_PARCEL_NAME_BYTES];

	for (uint32_t i = 0; i < port->info->n_rxqs; i++) {
		mr_parcel_name(name, "rx", i);
		mr_parcel_put(parcel, name, STATS_LAYOUT, &port->rxqs[i]->stats,
			      sizeof(port->rxqs[i]->stats));
	}
	for (uint32_t i = 0; i < port->info->n_txqs; i++) {
		const struct mr_tx_stats stats = tx_stats_of(port->txqs[i]);

		mr_parcel_name(name, "tx", i);
		mr_parcel_put(parcel, name, STATS_LAYOUT, &stats,
			      sizeof(stats));
	}
}

int mri_port_give(struct mr_port *port, uint32_t i, struct mr_parcel *parcel,
		  struct mr_reason *reterr_reason)
{
	int err;

	/* The port may have lost its device, and its driver, since the offer. */
	if (port->driver->hand_over == NULL)
		return mr_fail(reterr_reason, -ENODEV, "%s: the device is gone",
			       port->info->name);
	enter(parcel, i);
	put_settings(port, parcel);
	put_stats(port, parcel);
	if (port->rules != NULL && port->rules_idx == 0)
		mri_rules_give(port->rules, parcel);
	err = port->driver->hand_over->give(port, parcel, reterr_reason);
	mr_parcel_enter(parcel, "");
	return err;
}

const struct mr_driver *mri_port_change(struct mr_port *port)
{
	mri_pool_forget_kept(port->pool);
	return port->driver;
}

int mri_port_keep(struct mr_port *port, uint32_t i, struct mr_parcel *parcel,
		  struct mr_reason *reterr_reason)
{
	const struct mr_hand_over_ops *ops = port->driver->hand_over;
	int err;

	if (ops == NULL || ops->recover == NULL || port->rules != NULL)
		return mr_fail(reterr_reason, -ENOTSUP,
			       "%s: a port %s cannot be recovered after a crash",
			       port->info->name,
			       port->rules != NULL ? "with rules" :
						     "of its driver");
	err = mri_port_offer(port, i, parcel, reterr_reason);
	enter(parcel, i);
	put_settings(port, parcel);
	mr_parcel_enter(parcel, "");
	return err;
}

/* A copy of an entry, if there is one. */
static void *copy_entry(const struct mr_port *port,
			const struct mr_parcel *parcel, const char *name,
			size_t *ret_n_bytes)
{
	const void *bytes = NULL;
	void *copy = NULL;

	if (mr_parcel_find(parcel, name, SETTINGS_LAYOUT, &bytes, ret_n_bytes,
			   NULL) == 0 &&
	    *ret_n_bytes > 0)
		copy = mr_alloc(port->ctx, 0, *ret_n_bytes + 1);
	return copy != NULL ? memcpy(copy, bytes, *ret_n_bytes) : NULL;
}

/* The device has these settings. They are for when the port is opened again. */
static int get_settings(struct mr_port *port, const struct mr_parcel *parcel,
			struct mr_reason *reterr_reason)
{
	struct mri_kept *kept = kept_of(port);
	struct mri_settings *set = &kept->settings;
	uint64_t words[2 * MRI_N_SETTINGS];
	const void *drops = NULL;
	size_t n = 0;
	int err;

	if ((err = mr_parcel_get(parcel, "settings", SETTINGS_LAYOUT, words,
				 sizeof(words), reterr_reason)) < 0 ||
	    (err = mr_parcel_get(parcel, "kept/rx", KEPT_LAYOUT, &kept->rx,
				 sizeof(kept->rx), reterr_reason)) < 0 ||
	    (err = mr_parcel_get(parcel, "kept/tx", KEPT_LAYOUT, &kept->tx,
				 sizeof(kept->tx), reterr_reason)) < 0 ||
	    (err = mr_parcel_find(parcel, "kept/drops", KEPT_LAYOUT, &drops, &n,
				  reterr_reason)) < 0)
		return err;
	for (uint32_t i = 0; i < MRI_N_SETTINGS; i++) {
		set->is_made[i] = words[i] != 0;
		set->values[i] = words[MRI_N_SETTINGS + i];
	}
	kept->n_drops = (uint32_t)(n / sizeof(kept->drops[0]));
	if (kept->n_drops > MRI_KEPT_DROPS)
		kept->n_drops = MRI_KEPT_DROPS;
	memcpy(kept->drops, drops, kept->n_drops * sizeof(kept->drops[0]));
	set->macs = copy_entry(port, parcel, "macs", &n);
	set->n_macs = set->macs != NULL ? (uint32_t)(n / 6) : 0;
	set->filter = copy_entry(port, parcel, "filter", &n);
	return 0;
}

static int get_stats(struct mr_port *port, const struct mr_parcel *parcel,
		     struct mr_reason *reterr_reason)
{
	char name[MR_PARCEL_NAME_BYTES];
	int err = 0;

	for (uint32_t i = 0; i < port->info->n_rxqs && err == 0; i++) {
		mr_parcel_name(name, "rx", i);
		err = mr_parcel_get(
			parcel, name, STATS_LAYOUT, &port->rxqs[i]->stats,
			sizeof(port->rxqs[i]->stats), reterr_reason);
	}
	for (uint32_t i = 0; i < port->info->n_txqs && err == 0; i++) {
		mr_parcel_name(name, "tx", i);
		err = mr_parcel_get(
			parcel, name, STATS_LAYOUT, &port->txqs[i]->stats,
			sizeof(port->txqs[i]->stats), reterr_reason);
	}
	return err;
}

int mri_port_resume(struct mr_port *port, uint32_t i, struct mr_parcel *parcel,
		    struct mr_reason *reterr_reason)
{
	int err;

	if (port->rules != NULL && events_of(port)->must_filter)
		return mr_fail(reterr_reason, -EINVAL,
			       "%s: its filter cannot change, because it has "
			       "rules: this needs a restart",
			       port->info->name);
	enter(parcel, i);
	err = get_settings(port, parcel, reterr_reason);
	if (err == 0)
		err = get_stats(port, parcel, reterr_reason);
	if (err == 0)
		err = mri_rules_resume(port, parcel, reterr_reason);
	if (err == 0)
		err = port->driver->hand_over->resume(port, parcel,
						      reterr_reason);
	(void)mri_events_publish(port);
	mr_parcel_enter(parcel, "");
	return err;
}

int mri_port_recover(struct mr_port *port, uint32_t i, struct mr_parcel *parcel,
		     struct mr_reason *reterr_reason)
{
	const struct mr_hand_over_ops *ops = port->driver->hand_over;
	int err;

	if (ops->recover == NULL)
		return mr_fail(reterr_reason, -ENOTSUP,
			       "%s: a port of its driver cannot be recovered",
			       port->info->name);
	enter(parcel, i);
	err = get_settings(port, parcel, reterr_reason);
	if (err == 0)
		err = ops->recover(port, parcel, reterr_reason);
	(void)mri_events_publish(port);
	mr_parcel_enter(parcel, "");
	return err;
}
