/* SPDX-License-Identifier: BSD-3-Clause */
/* Open and close with a program's settings, and change them while it runs. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <millrace/experimental/hand_over.h>

#include "dataplane.h"
#include "keeper.h"
#include "text.h"
#include "upgrade.h"

enum { MAX_AUTO_WORKERS = 16 }; /* as the library */

static void print_log(void *opaque, enum mr_log_level level, const char *line)
{
	const struct dataplane *plane = opaque;
	static const char *const names[] = { "", "error", "warning", "info",
					     "debug" };

	/* mrctl sets it while other threads log. */
	if (level <= __atomic_load_n(&plane->log_level, __ATOMIC_RELAXED))
		print_error("%s: %s: %s", plane->program, names[level], line);
}

/* A queue has several fds, and the soft limit is low because of select(). */
static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/* Of ports whose frames have several entries. */
static int check_burst(const struct dataplane *plane,
		       const struct dataplane_config *config,
		       struct mr_reason *ret_error)
{
	for (uint32_t p = 0; p < plane->n_ports; p++) {
		struct mr_port_info info = { .size = sizeof(info) };

		mr_port_info(plane->ports[p], &info);
		if (info.has_sg && config->burst < MR_MAX_SEGS)
			return fail_with(
				ret_error, 2,
				"--burst %u: frames of %s have several "
				"entries, so a burst needs at least %d",
				config->burst, info.name, MR_MAX_SEGS);
	}
	return 0;
}

/* Whether the socket that a killed process left has its ports. Else, open them. */
static bool recover(struct dataplane *plane, int kept_fd,
		    const struct mr_dataplane_config *config)
{
	struct mr_reason why;
	const int err =
		mr_dataplane_recover(kept_fd, config, &plane->open, &why);

	if (err == 0)
		print_error("%s: the process before this one was killed; its "
			    "ports go on",
			    plane->program);
	else if (err != -ENOENT)
		print_error("%s: the process before this one was killed; its "
			    "ports are opened anew: %s",
			    plane->program, why.text);
	return err == 0;
}

/* Take over from the process that started this one; or recover the ports of one
 * that was killed; or open them. */
static int open_by_any_means(struct dataplane *plane,
			     const struct mr_dataplane_config *config,
			     struct mr_reason *ret_error)
{
	int kept_fds[KEEPER_MAX_FDS];
	const uint32_t n_kept = keeper_take_fds(kept_fds);
	bool is_recovered = false;

	plane->is_taken_over = upgrade_fd() >= 0;
	for (uint32_t i = 0; i < n_kept; i++) {
		if (!plane->is_taken_over && !is_recovered)
			is_recovered = recover(plane, kept_fds[i], config);
		close(kept_fds[i]);
	}
	if (is_recovered)
		return 0;
	return plane->is_taken_over ?
		       mr_dataplane_take_over(upgrade_fd(), config,
					      &plane->open, ret_error) :
		       mr_dataplane_open(config, &plane->open, ret_error);
}

static int open_parts(struct dataplane *plane,
		      const struct dataplane_config *config,
		      struct mr_reason *ret_error)
{
	const char *specs[MAX_PORTS];
	const struct mr_dataplane_config all = {
		.size = sizeof(all),
		.n_specs = config->n_ports,
		.specs = specs,
		.ctx = plane->ctx,
		.name = config->program,
		.n_pages = config->n_pages,
		.kept_pages = config->n_kept_pages,
		.page_bytes = config->page_bytes,
		.safety = config->safety,
		.n_workers = config->n_workers,
		.max_workers = config->port.n_queues < MAX_AUTO_WORKERS ?
				       config->port.n_queues :
				       MAX_AUTO_WORKERS,
		.may_idle = 1,
		.n_cores = config->n_cores,
		.cores = config->n_cores > 0 ? config->cores : NULL,
		.sends_to = config->sends_to,
		.handoff_entries = config->handoff_entries,
		.idle = config->idle,
		.may_be_fewer = config->may_be_fewer,
		.takes_meta = config->takes_meta,
	};
	int err;

	for (uint32_t p = 0; p < config->n_ports; p++)
		specs[p] = plane->specs[p];
	err = open_by_any_means(plane, &all, ret_error);
	if (err < 0)
		upgrade_refuse(ret_error->text);
	if (err < 0) /* an error in a spec is a usage error */
		return err == -EINVAL ? 2 : 1;
	plane->pool = plane->open->pool;
	plane->n_pages = plane->open->n_pages;
	plane->ports = plane->open->ports;
	plane->n_ports = plane->open->n_ports;
	plane->workers = plane->open->workers;
	plane->n_workers = plane->open->n_workers;
	plane->has_meta = plane->open->has_meta;
	return check_burst(plane, config, ret_error);
}

int dataplane_open(struct dataplane *plane,
		   const struct dataplane_config *config,
		   struct mr_reason *ret_error)
{
	const struct mr_ctx_config ctx = { .size = sizeof(ctx),
					   .opaque = plane,
					   .log = print_log };
	int status;

	*plane = (struct dataplane){ .program = config->program,
				     .log_level = config->log_level,
				     .idle = config->idle,
				     .has_filter =
					     config->port.punt[0] != '\0' };
	if (config->n_ports > MAX_PORTS)
		return fail_with(ret_error, 2, "%u ports are more than %d",
				 config->n_ports, MAX_PORTS);
	raise_file_limit();
	if (mr_ctx_create(&ctx, &plane->ctx, ret_error) < 0)
		return 1;
	status = specs_make(plane->ctx, config->specs, config->n_ports,
			    &config->port, plane->specs, ret_error);
	if (status == 0)
		status = open_parts(plane, config, ret_error);
	if (status != 0)
		(void)dataplane_close(plane, NULL);
	return status;
}

void dataplane_close_ports(struct dataplane *plane)
{
	if (plane->open != NULL)
		mr_dataplane_close_ports(plane->open);
	plane->n_ports = 0;
	plane->workers = NULL;
}

int dataplane_close(struct dataplane *plane, struct mr_reason *ret_error)
{
	int err;

	dataplane_close_ports(plane);
	err = mr_dataplane_close(plane->open, ret_error);
	mr_ctx_destroy(plane->ctx);
	*plane = (struct dataplane){ 0 };
	return err;
}

void dataplane_set_idle(struct dataplane *plane, enum mr_idle_mode idle)
{
	plane->idle = idle;
	mr_workers_set_idle(plane->workers, idle);
}

void dataplane_set_log(struct dataplane *plane, enum mr_log_level level)
{
	__atomic_store_n(&plane->log_level, level, __ATOMIC_RELAXED);
}

int dataplane_set_port_punt(struct dataplane *plane, uint32_t p,
			    const char *spec, const char *filter,
			    struct mr_reason *ret_error)
{
	char expression[MAX_PUNT_BYTES + sizeof("not ()")] = "greater 0";

	/* The others were opened without a filter. */
	if (mr_port_takes_option(plane->ctx, spec, "filter", ret_error) <= 0)
		return 0;
	if (filter[0] != '\0')
		snprintf(expression, sizeof(expression), "not (%s)", filter);
	return mr_port_set_filter(plane->ports[p], expression, ret_error);
}

int dataplane_set_punt(struct dataplane *plane, const char *const *specs,
		       const char *before, const char *next,
		       struct mr_reason *ret_error)
{
	struct mr_reason unused;
	uint32_t p = 0;
	int err = 0;

	for (; p < plane->n_ports && err == 0; p++)
		err = dataplane_set_port_punt(plane, p, specs[p], next,
					      ret_error);
	for (p = err < 0 ? p - 1 : 0; p > 0; p--)
		(void)dataplane_set_port_punt(plane, p - 1, specs[p - 1],
					      before, &unused);
	return err;
}

void dataplane_print_port(const struct mr_port_info *info)
{
	print_error("port %s  mode %s%s%s%s, %u rx, %u tx queues", info->name,
		    info->mode, info->why[0] ? " (" : "", info->why,
		    info->why[0] ? ")" : "", info->n_rxqs, info->n_txqs);
}

void dataplane_print_map(const struct dataplane *plane)
{
	char line[1024];

	for (uint32_t p = 0; p < plane->n_ports; p++) {
		struct mr_port_info info = { .size = sizeof(info) };

		mr_port_info(plane->ports[p], &info);
		dataplane_print_port(&info);
	}
	for (uint32_t i = 0;
	     mr_workers_line(plane->workers, i, line, sizeof(line)) == 0; i++)
		print_error("%s", line);
}
