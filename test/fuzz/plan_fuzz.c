/* SPDX-License-Identifier: BSD-3-Clause */
/* A plan file from anywhere: steps with names of files, or one line with the
 * file's name. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "plan/plan.h"

#define SEED(text)                                                             \
	{                                                                      \
		text, sizeof(text) - 1                                         \
	}

const struct fuzz_seed fuzz_seeds[] = {
	SEED("measures: [{name: t, run: tx p}]\n"),
	SEED("folder: out\nbefore: a\nafter: b\nprefix: c\nrepeat: 3\n"
	     "devices:\n- {name: a, start: s, ready: r, stop: p, wait: 2s}\n"
	     "- {name: b}\n"
	     "measures:\n- name: t\n  run: x {size} {rate}{size}\n"
	     "  sizes: [60, 1514]\n  rates: [1M, 25%]\n  time: 1m\n"
	     "  limit: 2m\n- {name: l, run: latency}\n"),
	SEED("&a [*a, {? [x] : y}]\n"),
	{ NULL, 0 },
};

static void check_step(const struct plan *plan, const struct step *step)
{
	char text[64];

	FUZZ_CHECK(step->device < plan->n_devices);
	FUZZ_CHECK(step->measure < plan->n_measures);
	FUZZ_CHECK(step->round < plan->repeat);
	FUZZ_CHECK(memchr(step->name, '\0', sizeof(step->name)) != NULL);
	FUZZ_CHECK(step->name[0] != '\0' && step->name[0] != '.');
	FUZZ_CHECK(strchr(step->name, '/') == NULL);
	step_words(plan, step, text, sizeof(text));
	FUZZ_CHECK(strlen(text) < sizeof(text));
	step_title(plan, step, text, sizeof(text));
	FUZZ_CHECK(strlen(text) < sizeof(text));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	struct mr_reason why = { .text = "" };
	struct step *steps;
	struct plan plan;
	uint32_t n;

	if (plan_parse("file", (const char *)bytes, n_bytes, &plan, &why) < 0) {
		FUZZ_CHECK(memchr(why.text, '\0', sizeof(why.text)) != NULL);
		FUZZ_CHECK(strncmp(why.text, "file:", 5) == 0);
		for (const char *c = why.text; *c != '\0'; c++)
			FUZZ_CHECK((unsigned char)*c >= ' ');
		return 0;
	}
	FUZZ_CHECK(steps_make(&plan, &steps, &n) == 0);
	FUZZ_CHECK(n > 0 && n <= PLAN_MAX_STEPS);
	for (uint32_t i = 0; i < n; i++)
		check_step(&plan, &steps[i]);
	free(steps);
	plan_free(&plan);
	return 0;
}
