/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of a plan. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"

struct steps {
	const struct plan *plan;
	struct step *list; /* NULL: they are counted only */
	uint32_t n;
};

static void add(struct steps *steps, const struct step *step)
{
	const struct plan *plan = steps->plan;
	struct step *to;
	size_t n = 0;

	if (steps->list != NULL) {
		to = &steps->list[steps->n];
		*to = *step;
		if (plan->devices[step->device].name[0] != '\0')
			n = (size_t)snprintf(to->name, sizeof(to->name), "%s+",
					     plan->devices[step->device].name);
		n += (size_t)snprintf(to->name + n, sizeof(to->name) - n, "%s",
				      plan->measures[step->measure].name);
		if (step->size > 0)
			n += (size_t)snprintf(to->name + n,
					      sizeof(to->name) - n, "+%u",
					      step->size);
		if (step->rate != NULL)
			n += (size_t)snprintf(to->name + n,
					      sizeof(to->name) - n, "+%s",
					      step->rate);
		snprintf(to->name + n, sizeof(to->name) - n, "+%u",
			 step->round + 1);
	}
	steps->n++;
}

static void add_measure(struct steps *steps, uint32_t round, uint32_t device,
			uint32_t i)
{
	const struct plan_measure *measure = &steps->plan->measures[i];
	struct step step = { .device = device, .measure = i, .round = round };
	uint32_t size = 0;

	do {
		uint32_t rate = 0;

		step.size = measure->n_sizes > 0 ? measure->sizes[size] : 0;
		do {
			step.rate = measure->n_rates > 0 ?
					    measure->rates[rate].text :
					    NULL;
			add(steps, &step);
		} while (++rate < measure->n_rates);
	} while (++size < measure->n_sizes);
}

static void add_all(struct steps *steps)
{
	const struct plan *plan = steps->plan;

	for (uint32_t round = 0; round < plan->repeat; round++)
		for (uint32_t i = 0; i < plan->n_devices; i++)
			for (uint32_t j = 0; j < plan->n_measures; j++)
				add_measure(steps, round,
					    round % 2 == 0 ?
						    i :
						    plan->n_devices - 1 - i,
					    j);
}

int steps_make(const struct plan *plan, struct step **ret, uint32_t *ret_n)
{
	struct steps steps = { .plan = plan };

	add_all(&steps);
	steps.list = calloc(steps.n, sizeof(*steps.list));
	if (steps.list == NULL)
		return -ENOMEM;
	steps.n = 0;
	add_all(&steps);
	*ret = steps.list;
	*ret_n = steps.n;
	return 0;
}

/* Copy text with each mark replaced. */
static void replace(const char *text, const char *mark, const char *by,
		    char *ret, size_t n_bytes)
{
	size_t n = 0;

	while (*text != '\0' && n + 1 < n_bytes) {
		if (strncmp(text, mark, strlen(mark)) == 0) {
			n += (size_t)snprintf(ret + n, n_bytes - n, "%s", by);
			if (n >= n_bytes)
				n = n_bytes - 1;
			text += strlen(mark);
		} else {
			ret[n++] = *text++;
		}
	}
	ret[n] = '\0';
}

void step_words(const struct plan *plan, const struct step *step, char *ret,
		size_t n_bytes)
{
	char size[12], sized[2 * PLAN_COMMAND_CHARS];

	snprintf(size, sizeof(size), "%u", step->size);
	replace(plan->measures[step->measure].run, "{size}", size, sized,
		sizeof(sized));
	replace(sized, "{rate}", step->rate != NULL ? step->rate : "", ret,
		n_bytes);
}

void step_setup(const struct plan *plan, const struct step *step, char *ret,
		size_t n_bytes)
{
	const struct plan_device *device = &plan->devices[step->device];

	snprintf(ret, n_bytes,
		 "before: %s; prefix: %s; start: %s; ready: %s; wait: %us",
		 plan->before, plan->prefix, device->start, device->ready,
		 device->wait_s);
}

void step_title(const struct plan *plan, const struct step *step, char *ret,
		size_t n_bytes)
{
	const char *device = plan->devices[step->device].name;
	size_t n = (size_t)snprintf(ret, n_bytes, "%s%s%s", device,
				    device[0] != '\0' ? ", " : "",
				    plan->measures[step->measure].name);

	if (step->size > 0 && n < n_bytes)
		n += (size_t)snprintf(ret + n, n_bytes - n, ", %u bytes",
				      step->size);
	if (step->rate != NULL && n < n_bytes)
		n += (size_t)snprintf(ret + n, n_bytes - n, ", %s", step->rate);
	if (plan->repeat > 1 && n < n_bytes)
		snprintf(ret + n, n_bytes - n, ", round %u", step->round + 1);
}
