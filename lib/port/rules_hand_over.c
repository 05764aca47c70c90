/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A set of rules goes with its ports. Its entries are in the folder of its
 * first port: which set it is with the offer, and which rules it has with the
 * state. The driver's part goes on forwarding meanwhile.
 */
#include <errno.h>
#include <string.h>

#include <millrace/driver.h>
#include <millrace/experimental/driver_offload.h>

#include "base/base.h"
#include "port/events.h"
#include "port/hand_over.h"

enum {
	SET_LAYOUT = 1,   /* of struct set */
	RULES_LAYOUT = 1, /* of struct mr_rule, by slot */
	IDS_LAYOUT = 1,   /* of the ring of free ids, after first and number */
};

/* What both processes must agree on, and what the first one chose: the magic of
 * tickets, and first_id. */
struct set {
	uint32_t n_ports, n_max, n_hops, magic;
	uint32_t first_id, id_step;
};

static struct set set_of(const struct mr_rules *rules)
{
	return (struct set){ .n_ports = rules->n_ports,
			     .n_max = rules->n_max,
			     .n_hops = rules->n_hops,
			     .magic = rules->magic,
			     .first_id = rules->first_id,
			     .id_step = rules->id_step };
}

int mri_rules_offer(struct mr_rules *rules, struct mr_parcel *parcel,
		    struct mr_reason *reterr_reason)
{
	const struct set set = set_of(rules);

	if (!rules->hands_over || rules->ops->offer == NULL)
		return mr_fail(reterr_reason, -ENOTSUP,
			       "%s: it has rules, which cannot be handed over",
			       rules->ports[0]->info->name);
	mr_parcel_put(parcel, "rules", SET_LAYOUT, &set, sizeof(set));
	return rules->ops->offer(rules, parcel, reterr_reason);
}

int mri_rules_take(struct mr_rules *rules, struct mr_reason *reterr_reason)
{
	struct mr_parcel *parcel =
		((struct mri_events *)rules->ports[0]->events)->parcel;
	struct set set, wanted = set_of(rules);
	int err = -ENOENT;

	if (parcel != NULL && rules->hands_over && rules->ops->take != NULL) {
		mri_port_enter(rules->ports[0], parcel);
		err = mr_parcel_get(parcel, "rules", SET_LAYOUT, &set,
				    sizeof(set), reterr_reason);
	}
	if (err < 0)
		return mr_fail(reterr_reason, -EINVAL,
			       "%s: rules, and the running data plane has none "
			       "that can be taken over: this needs a restart",
			       rules->ports[0]->info->name);
	wanted.magic = set.magic;
	wanted.first_id = set.first_id;
	if (memcmp(&set, &wanted, sizeof(set)) != 0)
		return mr_fail(reterr_reason, -EINVAL,
			       "%s: the running data plane has another set of "
			       "rules: this needs a restart",
			       rules->ports[0]->info->name);
	rules->magic = set.magic;
	rules->first_id = (uint16_t)set.first_id;
	return rules->ops->take(rules, parcel, reterr_reason);
}

void mri_rules_give(const struct mr_rules *rules, struct mr_parcel *parcel)
{
	const uint32_t where[2] = { rules->first_free, rules->n_free };

	mr_parcel_put(parcel, "rules/rules", RULES_LAYOUT, rules->rules,
		      rules->n_max * sizeof(rules->rules[0]));
	mr_parcel_put(parcel, "rules/free", IDS_LAYOUT, where, sizeof(where));
	mr_parcel_put(parcel, "rules/ids", IDS_LAYOUT, rules->free_ids,
		      rules->n_max * sizeof(rules->free_ids[0]));
}

int mri_rules_resume(struct mr_port *port, const struct mr_parcel *parcel,
		     struct mr_reason *reterr_reason)
{
	struct mr_rules *rules = port->rules;
	uint32_t where[2];
	int err = mr_parcel_get(parcel, "rules/free", IDS_LAYOUT, where,
				sizeof(where), reterr_reason);

	if (err == -ENOENT) /* the set's first port has them */
		return 0;
	if (err < 0)
		return err;
	if (rules == NULL)
		return mr_fail(reterr_reason, -EINVAL,
			       "%s: the running data plane has rules, and this "
			       "one wants none: this needs a restart",
			       port->info->name);
	if ((err = mr_parcel_get(parcel, "rules/rules", RULES_LAYOUT,
				 rules->rules,
				 rules->n_max * sizeof(rules->rules[0]),
				 reterr_reason)) < 0 ||
	    (err = mr_parcel_get(parcel, "rules/ids", IDS_LAYOUT,
				 rules->free_ids,
				 rules->n_max * sizeof(rules->free_ids[0]),
				 reterr_reason)) < 0)
		return err;
	if (where[0] >= rules->n_max || where[1] > rules->n_max)
		return mr_fail(reterr_reason, -EPROTO,
			       "%s: the state has too many rules",
			       port->info->name);
	rules->first_free = where[0];
	rules->n_free = where[1];
	return 0;
}
