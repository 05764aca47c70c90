/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/dataplane/text.c: all counters by name. */
#include <jansson.h>

#include <millrace/port_device.h>

#include "fixture.h"

static const char *const specs[] = { "null:", "pair:1", NULL };
static char text[32768];

static int text_set_up(void **state)
{
	const int err = ctx_set_up(state);
	const struct mr_dataplane_config config = config_of(specs);
	struct mr_worker *worker;

	open_plane(&config);
	worker = mr_workers_get(dp->workers, 0);
	for (uint32_t i = 0; i < 7; i++) {
		struct mr_frame frames[10];
		const uint32_t n = mr_rx_burst(worker->rxqs[0].rxq,
					       worker->cache, frames, 10);

		mr_frame_free_bulk(worker->cache, frames, n);
	}
	return err;
}

#define TEXT_TEST(name) TEST_WITH(text_set_up, plane_tear_down, name)

static void assert_has(const char *words)
{
	if (strstr(text, words) == NULL)
		fail_msg("'%s' is not in '%s'", words, text);
}

TEXT_TEST(text_has_the_counters_of_ports_workers_and_pool)
{
	struct mr_pool_stats pool = { .size = sizeof(pool) };
	char line[100], port[8192];
	size_t n;

	n = mr_dataplane_text(dp, text, sizeof(text));
	assert_int_equal(n, strlen(text));
	for (uint32_t p = 0; p < 2; p++) {
		mr_port_stats_text(dp->ports[p], port, sizeof(port));
		assert_has(port);
	}
	assert_int_equal(strncmp(text, "port null:\n", 11), 0);
	assert_has("\nqueue 0 rx received 70\n");
	assert_has("\nworker 0 rounds 0\nworker 0 empty_rounds 0\n");
	assert_has("\nworker 0 handoff_full 0\n");
	assert_null(strstr(text, "worker 1"));
	mr_pool_stats(dp->pool, &pool);
	snprintf(line, sizeof(line), "\npool n_pages %llu\npool n_free %llu\n",
		 (unsigned long long)pool.n_pages,
		 (unsigned long long)pool.n_free);
	assert_has(line);
}

static uint64_t number_of(const json_t *object, const char *name)
{
	const json_t *number = json_object_get(object, name);

	if (!json_is_integer(number))
		fail_msg("there is no number %s", name);
	return (uint64_t)json_integer_value(number);
}

TEXT_TEST(json_has_the_same)
{
	struct mr_pool_stats pool = { .size = sizeof(pool) };
	json_t *all, *port, *worker;
	json_error_t error;
	size_t n;

	n = mr_dataplane_json(dp, text, sizeof(text));
	assert_int_equal(n, strlen(text));
	all = json_loads(text, JSON_REJECT_DUPLICATES, &error);
	if (all == NULL)
		fail_msg("%s in '%s'", error.text, text);
	assert_int_equal(json_object_size(all), 3);
	assert_int_equal(json_array_size(json_object_get(all, "ports")), 2);
	for (size_t p = 0; p < 2; p++) {
		port = json_array_get(json_object_get(all, "ports"), p);
		assert_string_equal(
			json_string_value(json_object_get(port, "port")),
			specs[p]);
	}
	assert_int_equal(json_array_size(json_object_get(all, "workers")), 1);
	worker = json_array_get(json_object_get(all, "workers"), 0);
	assert_int_equal(json_object_size(worker),
			 (sizeof(struct mr_worker_stats) - 8) / 8);
	assert_int_equal(number_of(worker, "rounds"), 0);
	mr_pool_stats(dp->pool, &pool);
	assert_int_equal(number_of(json_object_get(all, "pool"), "n_pages"),
			 pool.n_pages);
	assert_int_equal(number_of(json_object_get(all, "pool"), "n_in_flight"),
			 pool.n_in_flight);
	json_decref(all);
}

/* As snprintf(): whatever the room is, and never past it. */
TEXT_TEST(text_that_does_not_fit_is_cut_off)
{
	size_t (*const prints[])(const struct mr_dataplane *, char *,
				 size_t) = { mr_dataplane_text,
					     mr_dataplane_json };

	for (int i = 0; i < 2; i++) {
		const size_t n = prints[i](dp, text, sizeof(text));

		assert_int_equal(prints[i](dp, NULL, 0), n);
		for (size_t room = 1; room <= n + 1; room++) {
			char *part = malloc(room);

			assert_int_equal(prints[i](dp, part, room), n);
			assert_int_equal(strlen(part), room - 1);
			assert_memory_equal(part, text, room - 1);
			free(part);
		}
	}
}
