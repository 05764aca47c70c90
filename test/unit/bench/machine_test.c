/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of apps/bench: machine.c and machine_json.c, on a /sys of their own.
 */
#include "support/unit.h"

#include <sys/stat.h>

#include "machine.h"

static char sys[] = "/tmp/mr-machine-XXXXXX";

/* cpu0 to cpu3; the last one has none, as in most guests. */
static int make_sys(void **state)
{
	static const char *const governors[] = { "powersave", "performance",
						 "performance", NULL };
	static const char *const folders[] = { "devices", "system", "cpu" };
	char path[256];
	size_t n;

	(void)state;
	if (mkdtemp(sys) == NULL)
		return -1;
	n = (size_t)snprintf(path, sizeof(path), "%s", sys);
	for (uint32_t i = 0; i < 3; i++) {
		n += (size_t)snprintf(path + n, sizeof(path) - n, "/%s",
				      folders[i]);
		mkdir(path, 0700);
	}
	for (uint32_t i = 0; i < 4; i++) {
		FILE *file;

		snprintf(path + n, sizeof(path) - n, "/cpu%u", i);
		mkdir(path, 0700);
		snprintf(path + n, sizeof(path) - n, "/cpu%u/cpufreq", i);
		mkdir(path, 0700);
		if (governors[i] == NULL)
			continue;
		snprintf(path + n, sizeof(path) - n,
			 "/cpu%u/cpufreq/scaling_governor", i);
		file = fopen(path, "we");
		if (file == NULL)
			return -1;
		fprintf(file, "%s\n", governors[i]);
		fclose(file);
	}
	return 0;
}

static int remove_sys(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", sys);
	return system(command);
}

TEST(the_governor_is_that_of_the_cores_that_work)
{
	static const struct {
		uint32_t n, cores[4];
		const char *governor;
	} cases[] = {
		{ 1, { 0 }, "powersave" },
		{ 2, { 1, 2 }, "performance" },
		{ 3, { 1, 0, 2 }, "performance, powersave" },
		{ 4, { 0, 1, 2, 3 }, "powersave, performance, unknown" },
		{ 1, { 3 }, "unknown" },
	};

	for (uint32_t i = 0; i < 5; i++) {
		char text[96];

		machine_governor(sys, cases[i].cores, cases[i].n, text,
				 sizeof(text));
		assert_string_equal(text, cases[i].governor);
	}
}

/* A text that is too long for its place is cut, and ends. */
TEST(a_short_place_is_not_overrun)
{
	static const uint32_t cores[] = { 1, 0 };
	char text[16] = "xxxxxxxxxxxxxxx";

	machine_governor(sys, cores, 2, text, 14);
	assert_string_equal(text, "performance, ");
	assert_int_equal(text[14], 'x');
}

TEST(a_machine_has_all_of_its_members)
{
	struct machine machine;
	json_t *json;

	machine_look(&machine, "mr-bench x");
	json = machine_json(&machine);
	assert_string_equal(
		json_string_value(json_object_get(json, "governor")),
		machine.governor);
	assert_string_equal(json_string_value(json_object_get(json, "command")),
			    "mr-bench x");
	assert_true(machine.n_cores > 0);
	assert_true(machine.governor[0] != '\0');
	json_decref(json);
}

int main(void)
{
	return test_run(NULL, make_sys, remove_sys);
}
