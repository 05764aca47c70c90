/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of apps/bench/plan/file.c, steps.c and journal.c: what a plan says,
 * each mistake with its line and cure, the order of steps, and what is done of
 * them. series.c, child.c and plan_main.c are tested as a user meets them, in
 * test/gen/test_plan.py.
 */
#include "support/unit.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plan/journal.h"
#include "plan/plan.h"

static int parse(const char *text, struct plan *ret, struct mr_reason *why)
{
	const size_t n = strlen(text);
	/* Of its size exactly, so that ASan sees a byte read too far. */
	char *copy = malloc(n > 0 ? n : 1);
	int err;

	assert_non_null(copy);
	memcpy(copy, text, n);
	err = plan_parse("dir/f.yaml", copy, n, ret, why);
	free(copy);
	return err;
}

static void accept(const char *text, struct plan *ret)
{
	struct mr_reason why = { "" };

	if (parse(text, ret, &why) != 0)
		fail_msg("%s", why.text);
}

TEST(test_a_short_plan_has_all_the_defaults)
{
	struct plan plan;

	accept("measures:\n- name: t\n  run: tx p\n", &plan);
	assert_string_equal(plan.folder, "dir/f.results");
	assert_int_equal(plan.repeat, 1);
	assert_int_equal(plan.n_devices, 1);
	assert_string_equal(plan.devices[0].name, "");
	assert_string_equal(plan.prefix, "");
	assert_int_equal(plan.n_measures, 1);
	assert_string_equal(plan.measures[0].run, "tx p");
	assert_int_equal(plan.measures[0].time_s, 60);
	assert_int_equal(plan.measures[0].limit_s, 660);
	plan_free(&plan);
	accept("measures:\n- name: t\n  run: replay f.pcap p\n", &plan);
	plan_free(&plan);
}

static const char full[] =
	"folder: out\n"
	"before: make\n"
	"after: unmake\n"
	"prefix: ip netns exec t\n"
	"repeat: 2\n"
	"devices:\n"
	"- {name: a, start: run a, ready: ask a, stop: end a, wait: 2s}\n"
	"- name: b\n"
	"measures:\n"
	"- name: t\n"
	"  run: throughput x y --size {size} --rate {rate}/{size}\n"
	"  sizes: [60, 1514]\n"
	"  rates: [1M, 25%]\n"
	"  time: 1m\n"
	"  limit: 2m\n"
	"- {name: l, run: latency x y}\n";

TEST(test_every_key_is_taken)
{
	struct plan plan;

	accept(full, &plan);
	assert_string_equal(plan.folder, "out");
	assert_string_equal(plan.before, "make");
	assert_string_equal(plan.after, "unmake");
	assert_string_equal(plan.prefix, "ip netns exec t");
	assert_int_equal(plan.repeat, 2);
	assert_int_equal(plan.n_devices, 2);
	assert_string_equal(plan.devices[0].start, "run a");
	assert_string_equal(plan.devices[0].ready, "ask a");
	assert_string_equal(plan.devices[0].stop, "end a");
	assert_int_equal(plan.devices[0].wait_s, 2);
	assert_int_equal(plan.measures[0].n_sizes, 2);
	assert_int_equal(plan.measures[0].sizes[1], 1514);
	assert_string_equal(plan.measures[0].rates[1].text, "25%");
	assert_int_equal(plan.measures[0].time_s, 60);
	assert_int_equal(plan.measures[0].limit_s, 120);
	plan_free(&plan);
}

TEST(test_a_command_may_have_lines)
{
	struct plan plan;

	accept("prefix: |\n  a\n  b\n"
	       "measures:\n- name: t\n  run: >\n    tx p\n    --size 60\n",
	       &plan);
	assert_string_equal(plan.prefix, "a b ");
	assert_string_equal(plan.measures[0].run, "tx p --size 60 ");
	plan_free(&plan);
}

TEST(test_rounds_go_there_and_back)
{
	static const char *const names[] = {
		"a+t+60+1M+1",    "a+t+60+25%+1",  "a+t+1514+1M+1",
		"a+t+1514+25%+1", "a+l+1",         "b+t+60+1M+1",
		"b+t+60+25%+1",   "b+t+1514+1M+1", "b+t+1514+25%+1",
		"b+l+1",          "b+t+60+1M+2",
	};
	struct step *steps;
	struct plan plan;
	char text[200];
	uint32_t n;

	accept(full, &plan);
	assert_int_equal(steps_make(&plan, &steps, &n), 0);
	assert_int_equal(n, 20);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_string_equal(steps[i].name, names[i]);
	assert_string_equal(steps[19].name, "a+l+2");
	step_words(&plan, &steps[3], text, sizeof(text));
	assert_string_equal(text, "throughput x y --size 1514 --rate 25%/1514");
	step_title(&plan, &steps[3], text, sizeof(text));
	assert_string_equal(text, "a, t, 1514 bytes, 25%, round 1");
	step_words(&plan, &steps[3], text, 12);
	assert_string_equal(text, "throughput ");
	free(steps);
	plan_free(&plan);
}

#define MEASURE "measures: [{name: t, run: tx p}]\n"

static const struct {
	const char *text, *wanted;
} mistakes[] = {
	{ "", "dir/f.yaml:1: nothing is measured; add 'measures:" },
	{ "measures: []\n", "f.yaml:1: measures: is empty" },
	{ "- a\n", "f.yaml:1: keys with values are wanted here" },
	{ MEASURE "\nrepat: 3\n", "f.yaml:3: no key 'repat' here; 'repeat'" },
	{ MEASURE "repeat: 0\n", "f.yaml:2: repeat: '0'" },
	{ "measures:\n- run: tx p\n", "f.yaml:2: a measure without a name" },
	{ "measures:\n- name: t\n", "f.yaml:2: a measure that runs nothing" },
	{ "measures:\n- {name: t, run: fwd W01}\n",
	  "f.yaml:2: run: that command writes no document" },
	{ "measures:\n- {name: t, run: reflect p}\n",
	  "f.yaml:2: run: that command writes no document" },
	{ "measures:\n- {name: t, run: '  mem'}\n",
	  "f.yaml:2: run: that command writes no document" },
	{ "measures:\n- {name: t, run: tx p --out x}\n",
	  "f.yaml:2: run: --out is set here" },
	{ "measures:\n- {name: t, run: tx p, sizes: [60]}\n",
	  "f.yaml:2: there are sizes, but run has no {size}" },
	{ "measures:\n- {name: t, run: tx p, rates: [1M]}\n",
	  "f.yaml:2: there are rates, but run has no {rate}" },
	{ "measures:\n- {name: t, run: 'tx {size}'}\n",
	  "f.yaml:2: run has {size}, but there are none" },
	{ "measures:\n- {name: t, run: 'tx {rate}'}\n",
	  "f.yaml:2: run has {rate}, but there are none" },
	{ "measures:\n- {name: t, run: 'tx {size}', sizes: [60, 60]}\n",
	  "f.yaml:2: a size or a rate is there twice" },
	{ "measures:\n- {name: t, run: 'tx {rate}', rates: [1M, 1M]}\n",
	  "f.yaml:2: a size or a rate is there twice" },
	{ "measures:\n- {name: t, run: 'tx {size}',\n   sizes: [60, x]}\n",
	  "f.yaml:3: sizes: 'x' is not a whole number" },
	{ "measures:\n- {name: t, run: 'tx {rate}', rates: ['1 M']}\n",
	  "f.yaml:2: rates: '1 M' is no rate, as 1.2M" },
	{ "measures:\n- {name: a b, run: tx}\n", "f.yaml:2: name: 'a b' has" },
	{ "measures:\n- {name: ../x, run: tx}\n", "f.yaml:2: name: '../x'" },
	{ "measures:\n- {name: t, run: tx}\n- {name: t, run: tx}\n",
	  "f.yaml:3: two measures have this name" },
	{ MEASURE "devices:\n- start: x\n", "f.yaml:3: a device without a" },
	{ MEASURE "devices:\n- {name: d, stop: x}\n",
	  "f.yaml:3: a device with ready or stop, but without start" },
	{ MEASURE "devices:\n- {name: d}\n- {name: d}\n",
	  "f.yaml:4: two devices have this name" },
	{ "measures:\n- {name: t, run: tx, time: soon}\n",
	  "f.yaml:2: time: 'soon' is no time" },
	{ "measures: [\n", "f.yaml:2: no YAML" },
	{ MEASURE "---\ntitle: x\n", "f.yaml:3: a second document begins" },
};

TEST(test_each_mistake_has_its_line_and_its_cure)
{
	struct mr_reason why;
	struct plan plan;

	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		why.text[0] = '\0';
		assert_int_equal(parse(mistakes[i].text, &plan, &why), -EINVAL);
		if (strstr(why.text, mistakes[i].wanted) == NULL)
			fail_msg("'%s', not '%s'", why.text,
				 mistakes[i].wanted);
	}
}

TEST(test_a_plan_has_an_end)
{
	struct mr_reason why = { "" };
	struct plan plan;

	assert_int_equal(
		parse("repeat: 100\n"
		      "devices: [{name: a}, {name: b}, {name: c}, {name: d},\n"
		      "  {name: e}, {name: f}, {name: g}, {name: h}]\n"
		      "measures:\n"
		      "- {name: t, run: 'x {size}{rate}', "
		      "sizes: [60, 61, 62, 63], rates: [1, 2, 3, 4]}\n",
		      &plan, &why),
		-EINVAL);
	assert_non_null(strstr(why.text, "more than 10000 steps"));
}

TEST(test_what_is_done_is_known_after_a_restart)
{
	char folder[] = "/tmp/mr-plan-XXXXXX", inner[60], path[300];
	const struct journal_key key = { "tx p", "start: d", "1" };
	const struct journal_key others[] = { { "tx other", "start: d", "1" },
					      { "tx p", "start: e", "1" },
					      { "tx p", "start: d", "2" } };
	const struct step steps[] = { { .name = "s" } };
	struct journal journal;
	struct mr_reason why;
	FILE *file;

	assert_non_null(mkdtemp(folder));
	snprintf(inner, sizeof(inner), "%s/a/b", folder);
	assert_int_equal(journal_open(inner, true, &journal, &why), 0);
	assert_false(journal_has(&journal, "s", &key));
	assert_int_equal(journal_note(&journal, "s", &key, 1.5, 0, &why), 0);
	assert_int_equal(journal_note(&journal, "bad", &key, 2, 1, &why), 0);
	assert_false(journal_has(&journal, "s", &key)); /* no file of it */
	journal_path(&journal, "s", ".json", path, sizeof(path));
	file = fopen(path, "w");
	assert_non_null(file);
	fclose(file);
	journal_close(&journal);

	assert_int_equal(journal_open(inner, false, &journal, &why), 0);
	assert_int_equal(journal_count_others(&journal, NULL, 0), 1);
	assert_int_equal(journal_count_others(&journal, steps, 1), 0);
	assert_true(journal_has(&journal, "s", &key));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(journal_has(&journal, "s", &others[i]));
	assert_false(journal_has(&journal, "bad", &key));
	unlink(path);
	assert_false(journal_has(&journal, "s", &key));
	journal_path(&journal, "plan", ".journal", path, sizeof(path));
	journal_close(&journal);

	file = fopen(path, "w");
	assert_non_null(file);
	fputs("{\"schema\": \"another\"}", file);
	fclose(file);
	assert_int_equal(journal_open(inner, false, &journal, &why), -EBADMSG);
	assert_non_null(strstr(why.text, "no journal of a plan"));
	unlink(path);
	rmdir(inner);
	*strrchr(inner, '/') = '\0';
	rmdir(inner);
	rmdir(folder);
}

TEST(test_a_folder_is_for_one_at_a_time)
{
	char folder[] = "/tmp/mr-plan-XXXXXX";
	struct journal first, second;
	struct mr_reason why;

	assert_non_null(mkdtemp(folder));
	assert_int_equal(journal_open(folder, true, &first, &why), 0);
	assert_int_equal(journal_open(folder, true, &second, &why),
			 -EWOULDBLOCK);
	assert_non_null(strstr(why.text, "another mr-bench plan is at work"));
	/* To look does no harm. */
	assert_int_equal(journal_open(folder, false, &second, &why), 0);
	journal_close(&second);
	journal_close(&first);
	assert_int_equal(journal_open(folder, true, &second, &why), 0);
	journal_close(&second);
	rmdir(folder);
}
