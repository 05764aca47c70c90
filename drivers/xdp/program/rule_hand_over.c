/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A set of rules of another process: the attached programs and their maps go
 * on. The new process loads programs only to name the maps; nothing is attached
 * or detached.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "device/netdev.h"
#include "program/rule_set.h"
#include "xdp.h"

int mri_xdp_rules_offer(struct mr_rules *base, struct mr_parcel *parcel,
			struct mr_reason *reterr_reason)
{
	const struct xdp_rules *rules = (const struct xdp_rules *)base;
	const struct xdp_rules_bpf *first = rules->programs[0];
	const struct xdp_rules_bpf *tracer = rules->tracer;
	char name[MR_PARCEL_NAME_BYTES];
	const struct bpf_map *map;

	(void)reterr_reason;
	bpf_object__for_each_map(map, first->obj)
	{
		if (!mri_xdp_rules_has_map(first, map))
			continue;
		snprintf(name, sizeof(name), "rules/%s", bpf_map__name(map));
		mr_parcel_put_fd(parcel, name, bpf_map__fd(map));
	}
	/* Links of the tracer: it counts once, whoever has them. */
	mr_parcel_put_fd(parcel, "rules/0",
			 tracer != NULL ?
				 bpf_link__fd(tracer->links.millrace_xmit) :
				 rules->tracer_fds[0]);
	mr_parcel_put_fd(parcel, "rules/1",
			 tracer != NULL ?
				 bpf_link__fd(tracer->links.millrace_refused) :
				 rules->tracer_fds[1]);
	return 0;
}

/* The programs that are attached, which the other process has loaded. */
static int take_programs(struct xdp_rules *rules)
{
	for (uint32_t i = 0; i < rules->base.n_ports; i++) {
		struct xdp_port *port = xdp_rules_port(rules, i);
		const int fd =
			fcntl(port->prog.attached_fd, F_DUPFD_CLOEXEC, 0);

		rules->copy_fds[i] = mr_fd_guard(fd);
		if (rules->copy_fds[i] < 0)
			return -errno;
		port->rules = rules;
	}
	return 0;
}

static int take_steps(struct xdp_rules *rules, struct mr_parcel *parcel,
		      struct mr_reason *reterr_reason)
{
	int err;

	rules->parcel = parcel;
	err = mri_xdp_rules_load(rules);
	rules->parcel = NULL;
	if (err == 0)
		err = mri_xdp_netns_cookie(&rules->netns);
	if (err == 0)
		err = take_programs(rules);
	rules->tracer_fds[0] = mr_parcel_take_fd(parcel, "rules/0");
	rules->tracer_fds[1] = mr_parcel_take_fd(parcel, "rules/1");
	rules->base.fd = mri_xdp_features_open();
	if (rules->base.fd < 0)
		rules->base.fd = -1;
	mri_xdp_rules_read_features(rules);
	return err == 0 ? 0 :
			  mr_fail(reterr_reason, err,
				  "%s: the rules of the running data plane "
				  "cannot be taken over: %s",
				  rules->base.ports[0]->info->name,
				  mr_strerror(-err));
}

int mri_xdp_rules_take(struct mr_rules *base, struct mr_parcel *parcel,
		       struct mr_reason *reterr_reason)
{
	struct xdp_rules *rules = (struct xdp_rules *)base;
	int err;

	mri_xdp_quiet_begin();
	mri_xdp_rules_begin(rules);
	err = take_steps(rules, parcel, reterr_reason);
	if (err < 0)
		mri_xdp_rules_close(base);
	mri_xdp_quiet_end();
	return err;
}
