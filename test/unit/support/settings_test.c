/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/support: settings.c, yaml_show.c, objections.c and
 * dataplane_keys.c. Its verbs: test/unit/ctl. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/dataplane_keys.h"
#include "support/settings.h"
#include "support/unit.h"
#include "support/yaml_show.h"

struct thing {
	uint32_t number, word;
	char text[8];
	bool flag;
	uint32_t *list;
	uint32_t n_list;
};

static bool read_item(const char *text, void *to, struct mr_reason *why)
{
	(void)why;
	*(uint32_t *)to = (uint32_t)strtoul(text, NULL, 10);
	return true;
}

static void write_item(const void *from, char *ret_text, size_t n_bytes)
{
	snprintf(ret_text, n_bytes, "%u", *(const uint32_t *)from);
}

static const char *const words[] = { "zero", "one", NULL };

static const struct yaml_key inner_keys[] = {
	{ .name = "number",
	  .take = yaml_take_number,
	  .offset = offsetof(struct thing, number),
	  .n_bytes = 4,
	  .min = 1,
	  .max = 9,
	  .is_fixed = true },
	{ .name = "word",
	  .take = yaml_take_word,
	  .offset = offsetof(struct thing, word),
	  .n_bytes = 4,
	  .words = words,
	  .preset = "zero" },
	{ .name = NULL },
};

static const struct yaml_key keys[] = {
	{ .name = "inner", .take = yaml_take_mapping, .keys = inner_keys },
	{ .name = "text",
	  .take = yaml_take_text,
	  .offset = offsetof(struct thing, text),
	  .max = 8 },
	{ .name = "flag",
	  .take = yaml_take_bool,
	  .offset = offsetof(struct thing, flag),
	  .n_bytes = sizeof(bool),
	  .is_needed = true },
	{ .name = "list",
	  .take = yaml_take_list,
	  .read = read_item,
	  .write = write_item,
	  .offset = offsetof(struct thing, list),
	  .n_offset = offsetof(struct thing, n_list),
	  .n_bytes = 4,
	  .max = 9 },
	{ .name = NULL },
};

static int parse_bytes(const char *name, const char *bytes, size_t n_bytes,
		       struct thing *thing, struct yaml_errors *errors)
{
	struct yaml_reader reader;
	int err = yaml_open(&reader, name, bytes, n_bytes, errors);

	*thing = (struct thing){ 0 };
	if (err < 0)
		return err;
	err = yaml_take_keys(&reader, keys, yaml_root(&reader), thing);
	yaml_close(&reader);
	return err;
}

static int parse_thing(const char *text, struct thing *thing,
		       struct yaml_errors *errors)
{
	return parse_bytes("f", text, strlen(text), thing, errors);
}

static void assert_json(json_t *value, const char *want)
{
	char *text = json_dumps(value, JSON_COMPACT);

	assert_string_equal(text, want);
	free(text);
	json_decref(value);
}

static json_t *shown(const char *text)
{
	struct yaml_errors errors;
	struct thing thing;
	json_t *value;

	assert_int_equal(parse_thing(text, &thing, &errors), 0);
	value = yaml_show(keys, &thing);
	free(thing.list);
	return value;
}

TEST(a_read_configuration_is_shown)
{
	assert_json(shown("flag: no"),
		    "{\"inner\":{\"word\":\"zero\"},\"flag\":false}");
	assert_json(
		shown("{flag: on, text: 'a,b', list: [3, 4], inner: "
		      "{number: 9, word: one}}"),
		"{\"inner\":{\"number\":9,\"word\":\"one\"},\"text\":\"a,b\""
		",\"flag\":true,\"list\":[\"3\",\"4\"]}");
}

TEST(all_errors_have_their_lines)
{
	struct yaml_errors errors;
	struct thing thing;

	assert_int_equal(parse_thing("inner:\n  number: 10\n  word: two\n"
				     "text: much too long\nfleg: yes\n",
				     &thing, &errors),
			 -EINVAL);
	assert_int_equal(errors.n, 5);
	assert_reason_has(&errors.list[0], "f:2: number: '10' is not a whole");
	assert_reason_has(&errors.list[1], "f:3: word: 'two' is not one of");
	assert_reason_has(&errors.list[2], "f:4: text: ");
	assert_reason_has(&errors.list[3], "f:5: unknown key 'fleg'; did you");
	assert_reason_has(&errors.list[4], "'flag' is missing");
}

TEST(errors_beyond_the_room_are_left_out)
{
	char text[12 * 2 * YAML_MAX_ERRORS] = "";
	struct yaml_errors errors;
	struct thing thing;

	for (uint32_t i = 0; i < 2 * YAML_MAX_ERRORS; i++)
		snprintf(text + strlen(text), 12, "x%u: 1\n", i);
	assert_int_equal(parse_thing(text, &thing, &errors), -EINVAL);
	assert_int_equal(errors.n, YAML_MAX_ERRORS);
}

/* Each would take minutes otherwise. */
TEST(deep_files_and_many_anchors_are_refused)
{
	enum { N = 100000 };
	static const struct {
		const char *piece, *words;
	} cases[] = { { "[", "f:1: more than 16 levels" },
		      { "{", "f:1: more than 16 levels" },
		      { "? ", "f:1: more than 16 levels" },
		      { "- ", "f:1: more than 16 levels" },
		      { "- &a 1\n", "f:65: more than 64 anchors" } };
	char *text = malloc(N * 8);
	struct yaml_errors errors;
	struct thing thing;

	assert_non_null(text);
	for (uint32_t i = 0; i < 5; i++) {
		const size_t n = strlen(cases[i].piece);

		for (uint32_t j = 0; j < N; j++)
			memcpy(text + j * n, cases[i].piece, n);
		text[N * n] = '\0';
		assert_int_equal(parse_thing(text, &thing, &errors), -EINVAL);
		assert_int_equal(errors.n, 1);
		assert_reason_has(&errors.list[0], cases[i].words);
	}
	free(text);
	assert_int_equal(
		parse_thing("flag: &a yes\ntext: *a\n", &thing, &errors), 0);
	assert_string_equal(thing.text, "yes");
}

static void assert_changes(const char *from, const char *to, const char *want)
{
	json_t *a = shown(from), *b = shown(to);

	assert_json(yaml_changes(keys, a, b), want);
	json_decref(a);
	json_decref(b);
}

TEST(changes_are_keys_and_items)
{
	assert_changes("flag: yes", "flag: true", "[]");
	assert_changes("flag: Yes", "flag: TRUE", "[]");
	assert_changes("flag: no", "flag: Off", "[]");
	assert_changes("{flag: yes, text: a}", "{flag: no, inner: {number: 2}}",
		       "[{\"key\":\"inner: number\",\"restart\":true,\"to\":2},"
		       "{\"key\":\"text\",\"restart\":false,\"from\":\"a\"},"
		       "{\"key\":\"flag\",\"restart\":false,\"from\":true,"
		       "\"to\":false}]");
	assert_changes("{flag: yes, list: [1, 2]}", "{flag: yes, list: [2, 3]}",
		       "[{\"key\":\"list\",\"restart\":false,\"from\":\"1\"},"
		       "{\"key\":\"list\",\"restart\":false,\"to\":\"3\"}]");
	assert_changes("{flag: yes, list: [1, 2]}", "{flag: yes, list: [2, 1]}",
		       "[{\"key\":\"list\",\"restart\":false,\"from\":[\"1\","
		       "\"2\"],\"to\":[\"2\",\"1\"]}]");
}

TEST(the_schema_has_choices_ranges_and_defaults)
{
	json_t *schema = yaml_schema(keys, "t"), *inner, *key;

	inner = json_object_get(json_object_get(schema, "properties"), "inner");
	key = json_object_get(json_object_get(inner, "properties"), "word");
	assert_json(json_incref(key), "{\"enum\":[\"zero\",\"one\"],"
				      "\"description\":\"default: zero\"}");
	key = json_object_get(json_object_get(inner, "properties"), "number");
	assert_json(json_incref(key),
		    "{\"type\":\"integer\",\"minimum\":1,\"maximum\":9,"
		    "\"description\":\"fixed at run time\"}");
	assert_json(json_incref(json_object_get(schema, "required")),
		    "[\"flag\"]");
	json_decref(schema);
}

TEST(objections_are_reported_with_their_lines)
{
	static const char text[] = "a:\n  b: [x,\n      y]\nc: 1\n";
	struct objections objections = { .n = 0 };
	struct yaml_errors errors;
	struct yaml_reader reader;
	struct mr_reason why;

	object(&objections, "a", "b", 1, "no %s", "y");
	object(&objections, "a", "absent", OBJECTION_WHOLE, "missing");
	object(&objections, "c", NULL, OBJECTION_WHOLE, "no c");
	object(&objections, "d_e", NULL, OBJECTION_WHOLE, "no d");
	assert_int_equal(yaml_open(&reader, "f", text, strlen(text), &errors),
			 0);
	objections_report(&objections, &reader);
	yaml_close(&reader);
	assert_int_equal(errors.n, 4);
	assert_reason_has(&errors.list[0], "f:3: a: b: no y");
	assert_reason_has(&errors.list[1], "f:2: a: absent: missing");
	assert_reason_has(&errors.list[2], "f:4: c: no c");
	assert_reason_has(&errors.list[3], "f:1: d_e: no d");
	objection_of_option(&objections.list[3], &why);
	assert_string_equal(why.text, "--d-e: no d");
}

TEST(options_are_keys_of_the_file)
{
	struct dataplane_config config = { .n_workers = 1 };
	struct objections objections = { .n = 0 };
	struct mr_reason why;

	assert_int_equal(yaml_take_option(dataplane_keys, "pool-pages", "50",
					  &config, &why),
			 0);
	assert_int_equal(config.n_pages, 50);
	assert_int_equal(yaml_take_option(dataplane_keys, "burst", "257",
					  &config, &why),
			 -EINVAL);
	assert_string_equal(why.text, "--burst: '257' is not a whole number "
				      "from 1 to 256");
	assert_int_equal(
		yaml_take_option(dataplane_keys, "max", "1", &config, &why),
		-ENOENT);
	config.port.n_ring = 3000;
	config.page_bytes = 3000;
	assert_int_equal(dataplane_check(&config, &objections), -EINVAL);
	assert_int_equal(objections.n, 2);
}

/* An application of one number, which refuses 9. */
struct app {
	struct thing now;
};

static void *parse_file(void *opaque, const char *name, const char *bytes,
			size_t n_bytes, struct yaml_errors *ret_errors)
{
	struct thing *next = calloc(1, sizeof(*next));

	(void)opaque;
	if (parse_bytes(name, bytes, n_bytes, next, ret_errors) == 0)
		return next;
	free(next);
	return NULL;
}

static const void *current(void *opaque)
{
	return &((struct app *)opaque)->now;
}

static int apply_settings(void *opaque, void *settings,
			  struct mr_reason *ret_why)
{
	struct app *app = opaque;
	const struct thing next = *(struct thing *)settings;

	free(settings);
	if (next.word == 1)
		return fail_with(ret_why, -EIO, "not one");
	app->now = next;
	return 0;
}

static const struct settings_ops ops = {
	.keys = keys,
	.parse = parse_file,
	.destroy = free,
	.current = current,
	.apply = apply_settings,
};

static int reload(struct app *app, const char *text)
{
	char path[] = "/tmp/millrace-settings-XXXXXX";
	const int fd = mkstemp(path);
	int err;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	err = settings_reload(&ops, app, "test", path);
	unlink(path);
	return err;
}

TEST(a_reload_does_everything_or_nothing)
{
	struct app app = { .now = { .number = 1 } };

	assert_int_equal(settings_reload(&ops, &app, "test", "/nowhere/x"),
			 -EINVAL);
	assert_int_equal(reload(&app, "{flag: yes, inner: {number: 1}}"), 0);
	assert_true(app.now.flag);
	assert_int_equal(reload(&app, "{flag: no, inner: {number: 2}}"),
			 -EINVAL);
	assert_int_equal(
		reload(&app, "{flag: no, inner: {number: 1, word: one}}"),
		-EIO);
	assert_int_equal(reload(&app, "{flag: no, flog: 1}"), -EINVAL);
	assert_true(app.now.flag);
}
