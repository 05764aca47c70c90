/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/port/stats_text.c: a port's counters by name. */
#include "support/pool_unit.h"

#include <millrace/port_device.h>

static struct pool_fixture f;
static struct mr_port *port;
static char text[16384];

static uint32_t two_drops(const struct mr_port *of,
			  struct mr_named_count *ret_counts, uint32_t n)
{
	static const struct mr_named_count drops[] = { { "rx_missed", 7 },
						       { "rx_bad", 0 } };

	(void)of;
	memcpy(ret_counts, drops, (n < 2 ? n : 2) * sizeof(drops[0]));
	return 2;
}

/* Two rx queues and one tx queue, with some counts. */
static int print_open(struct mr_port *base, const struct mr_spec *spec,
		      struct mr_reason *reterr_reason)
{
	const int err =
		mr_port_make_queues(base, 2, sizeof(struct mr_rxq),
				    sizeof(struct mr_txq), reterr_reason);

	(void)spec;
	if (err < 0)
		return err;
	base->info->n_txqs = 1;
	base->rxqs[1]->stats.received = 12;
	base->rxqs[1]->stats.drops[MR_RX_DROP_RING_FULL] = 5;
	base->rxqs[1]->stats.events[MR_RX_EVENT_POOL_EMPTY] = 3;
	base->txqs[0]->stats.accepted = UINT64_MAX;
	return 0;
}

static void print_close(struct mr_port *base)
{
	(void)base;
}

static const struct mr_driver print_driver = {
	.version = MR_DRIVER_VERSION,
	.size = sizeof(struct mr_driver),
	.name = "print",
	.port_bytes = sizeof(struct mr_port),
	.open = print_open,
	.close = print_close,
	.device_drops = two_drops,
};

static int set_up(void **state)
{
	struct mr_port_config config = { .size = sizeof(config) };

	(void)state;
	fixture_open(&f, 1024, 4096);
	config.pool = f.pool;
	assert_int_equal(mr_ctx_add_driver(f.ctx, &print_driver, NULL), 0);
	assert_int_equal(mr_port_open(f.ctx, "print:x", &config, &port, NULL),
			 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	mr_port_close(port);
	fixture_close(&f);
	return 0;
}

#define PRINT_TEST(name) TEST_WITH(set_up, tear_down, name)

static void assert_has(const char *words)
{
	if (strstr(text, words) == NULL)
		fail_msg("'%s' is not in '%s'", words, text);
}

static uint32_t n_lines(void)
{
	uint32_t n = 0;

	for (const char *t = text; (t = strchr(t, '\n')) != NULL; t++)
		n++;
	return n;
}

static uint32_t n_names(const char *(*name_of)(uint32_t))
{
	uint32_t n = 0;

	while (name_of(n) != NULL)
		n++;
	return n;
}

PRINT_TEST(text_has_a_line_for_each_counter)
{
	const size_t n = mr_port_stats_text(port, text, sizeof(text));

	assert_int_equal(n, strlen(text));
	assert_int_equal(strncmp(text, "port print:x\n", 13), 0);
	assert_has("\ndevice_drops rx_missed 7\n");
	assert_has("\ndevice_drops rx_bad 0\n");
	assert_has("\nqueue 0 rx received 0\n");
	assert_has("\nqueue 1 rx received 12\n");
	assert_has("\nqueue 1 rx drops ring_full 5\n");
	assert_has("\nqueue 1 rx events pool_empty 3\n");
	assert_has("\nqueue 0 tx accepted 18446744073709551615\n");
	assert_null(strstr(text, "queue 1 tx"));
	assert_int_equal(n_lines(),
			 1 + 2 +
				 2 * (5 + n_names(mr_rx_drop_name) +
				      n_names(mr_rx_event_name)) +
				 4 + n_names(mr_tx_drop_name) +
				 n_names(mr_tx_event_name));
}

PRINT_TEST(json_has_the_same_in_objects)
{
	const size_t n = mr_port_stats_json(port, text, sizeof(text));
	int depth = 0;

	assert_int_equal(n, strlen(text));
	assert_has("{\"port\": \"print:x\", \"device_drops\": "
		   "{\"rx_missed\": 7, \"rx_bad\": 0}, \"queues\": [{\"rx\": "
		   "{\"received\": 0, ");
	assert_has("}}, \"tx\": {\"accepted\": 18446744073709551615, ");
	assert_has("}}}, {\"rx\": {\"received\": 12, ");
	assert_has("\"ring_full\": 5, ");
	assert_has("\"events\": {\"pool_empty\": 3, ");
	assert_null(strchr(text, '\n'));
	for (const char *t = text; *t != '\0'; t++)
		depth += (*t == '{') - (*t == '}');
	assert_int_equal(depth, 0);
}

/* As snprintf(): whatever the room is, and never past it. */
PRINT_TEST(text_that_does_not_fit_is_cut_off)
{
	size_t (*const prints[])(const struct mr_port *, char *, size_t) = {
		mr_port_stats_text, mr_port_stats_json
	};

	for (int i = 0; i < 2; i++) {
		const size_t n = prints[i](port, text, sizeof(text));

		assert_int_equal(prints[i](port, NULL, 0), n);
		for (size_t room = 1; room <= n + 1; room++) {
			char *part = malloc(room);

			assert_int_equal(prints[i](port, part, room), n);
			assert_int_equal(strlen(part), room - 1);
			assert_memory_equal(part, text, room - 1);
			free(part);
		}
	}
}

PRINT_TEST(name_with_any_bytes_is_a_string_of_json)
{
	static const struct {
		const char *name, *string;
	} cases[] = {
		{ "a\"b\\\\c", "a\\u0022b\\u005cc" },
		{ "tab\tend\x01", "tab\\u0009end\\u0001" },
		{ "\xc3\xa4\xe2\x82\xac\xf0\x9f\x8c\x8a",
		  "\xc3\xa4\xe2\x82\xac\xf0\x9f\x8c\x8a" },
		{ "cut\xe2\x82", "cut\\ufffd\\ufffd" },
		{ "\xff\xc0\x80\xed\xa0\x80",
		  "\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct mr_port_config config = { .size = sizeof(config),
						       .pool = f.pool };
		char spec[64], wanted[200];
		struct mr_port *other;

		snprintf(spec, sizeof(spec), "print:%s", cases[i].name);
		assert_int_equal(
			mr_port_open(f.ctx, spec, &config, &other, NULL), 0);
		snprintf(wanted, sizeof(wanted), "{\"port\": \"print:%s\", ",
			 cases[i].string);
		mr_port_stats_json(other, text, sizeof(text));
		mr_port_close(other);
		assert_has(wanted);
	}
}
