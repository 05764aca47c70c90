/* SPDX-License-Identifier: BSD-3-Clause */
/* Both sides of a NAT, for a front end. */
#include <stdlib.h>
#include <string.h>

#include "engine/serve.h"
#include "nat/nat_path.h"
#include "result/document.h"
#include "support/specs.h"

enum { N_KEPT_PAGES = 4096 };

static uint32_t number_at(const json_t *request, const char *key)
{
	return (uint32_t)serve_count(request, key);
}

static void describe_ports(const struct nat_path *path, json_t *document)
{
	const uint32_t all = UINT32_MAX;

	document_plane(document, &path->plane, &path->core, path->has_core, all,
		       all);
	document_clock(document, clock_source(&path->clock),
		       path->clock.error_ns);
}

int serve_nat_open(struct serving *serving, const json_t *request,
		   json_t *reply, struct mr_reason *why)
{
	struct tester_config *const tester = &serving->config;
	struct nat_path *path;
	int status;

	if (serving->nat != NULL)
		return fail_with(why, 2, "nat-open: they are open");
	path = calloc(1, sizeof(*path));
	if (path == NULL)
		return fail_with(why, 1, "out of memory");
	path->plan = (struct nat_plan){
		.client = number_at(request, "client"),
		.n_clients = number_at(request, "clients"),
		.gateway = number_at(request, "gateway"),
		.server = number_at(request, "server"),
		.is_tcp = json_is_true(json_object_get(request, "is_tcp")),
		.magic = number_at(request, "magic"),
	};
	if (path->plan.n_clients == 0)
		path->plan.n_clients = 1;
	serving->specs[0] = serving->tx[0];
	serving->specs[1] = serving->rx[0];
	tester->plane.specs = serving->specs;
	tester->plane.n_ports = tester->n_tx + tester->n_rx;
	tester->plane.n_workers = 1;
	tester->plane.n_kept_pages = N_KEPT_PAGES;
	status = ending_open(why) < 0 ?
			 1 :
			 nat_path_open(path, &tester->plane,
				       number_at(request, "room"), why);
	if (status != 0) {
		free(path);
		return status;
	}
	describe_ports(path, serving->document);
	json_object_set(reply, "document", serving->document);
	serving->nat = path;
	return 0;
}

/* Run the phase that the request names. Returns what the path does: 0, or
 * -errno with a reason; or 2: there are not so many connections. */
static int run_phase(struct nat_path *path, const json_t *request, double pps,
		     struct nat_counts *counts, struct mr_reason *why)
{
	const char *name =
		json_string_value(json_object_get(request, "request"));
	const uint32_t n = number_at(request, "n");

	if (strcmp(name, "nat-again") == 0)
		return nat_path_again(path, pps, counts, why);
	if (strcmp(name, "nat-validate") == 0)
		return n > path->n_known ?
			       fail_with(why, 2, "there are no %u connections",
					 n) :
			       nat_path_validate(path, pps, n, counts, why);
	if (json_is_true(json_object_get(request, "is_emptied")))
		nat_path_forget(path);
	if (n > path->n_room - path->n_known)
		return fail_with(why, 2, "no room for %u connections", n);
	return nat_path_establish(path, pps, n, counts, why);
}

int serve_nat_phase(struct serving *serving, const json_t *request,
		    json_t *reply, struct mr_reason *why)
{
	const double pps = json_number_value(json_object_get(request, "pps"));
	struct nat_counts counts;
	int status;

	if (serving->nat == NULL)
		return fail_with(why, 2, "no port is open");
	if (!(pps > 0))
		return fail_with(why, 2, "no rate is given");
	status = run_phase(serving->nat, request, pps, &counts, why);
	if (status != 0)
		return status < 0 ? 1 : status;
	json_object_update_new(
		reply,
		document_counts("sent arrived dropped_here",
				(uint64_t[]){ counts.sent, counts.arrived,
					      counts.n_dropped_here }));
	json_object_set_new(reply, "is_unsent", json_boolean(counts.is_unsent));
	return 0;
}

int serve_nat_close(struct serving *serving)
{
	int status = 0;

	if (serving->nat != NULL)
		status = nat_path_close(serving->nat);
	free(serving->nat);
	serving->nat = NULL;
	return status;
}
