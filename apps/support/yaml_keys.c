/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads YAML documents by tables. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "values.h"
#include "yaml_keys.h"

static yaml_node_t *node_of(struct yaml_reader *reader, int id)
{
	return yaml_document_get_node(&reader->document, id);
}

/* The text of a scalar; NULL, with an error, for anything else. */
static const char *text_of(struct yaml_reader *reader, yaml_node_t *node,
			   const char *what)
{
	if (node->type != YAML_SCALAR_NODE) {
		yaml_wrong(
			reader, node, "%s: must be one value, not a %s", what,
			node->type == YAML_MAPPING_NODE ? "mapping" : "list");
		return NULL;
	}
	if (strlen((char *)node->data.scalar.value) !=
	    node->data.scalar.length) {
		yaml_wrong(reader, node, "%s: contains a zero byte", what);
		return NULL;
	}
	return (char *)node->data.scalar.value;
}

static uint32_t count_items(const yaml_node_t *node)
{
	if (node->type != YAML_SEQUENCE_NODE)
		return 1;
	return (uint32_t)(node->data.sequence.items.top -
			  node->data.sequence.items.start);
}

yaml_node_t *yaml_item(struct yaml_reader *reader, yaml_node_t *node,
		       uint32_t i)
{
	if (i >= count_items(node))
		return NULL;
	if (node->type != YAML_SEQUENCE_NODE)
		return node;
	return node_of(reader, node->data.sequence.items.start[i]);
}

yaml_node_t *yaml_find(struct yaml_reader *reader, yaml_node_t *node,
		       const char *name)
{
	if (node == NULL || node->type != YAML_MAPPING_NODE)
		return NULL;
	for (yaml_node_pair_t *pair = node->data.mapping.pairs.start;
	     pair < node->data.mapping.pairs.top; pair++) {
		const yaml_node_t *key = node_of(reader, pair->key);

		if (key->type == YAML_SCALAR_NODE &&
		    strcmp((char *)key->data.scalar.value, name) == 0)
			return node_of(reader, pair->value);
	}
	return NULL;
}

static int complain_unknown(struct yaml_reader *reader,
			    const struct yaml_key *keys,
			    const yaml_node_t *node, const char *name)
{
	const char *names[YAML_MAX_KEYS + 1] = { NULL }, *nearest;
	char known[sizeof(reader->errors->list[0].text)] = "";

	for (uint32_t i = 0; i < YAML_MAX_KEYS && keys[i].name != NULL; i++) {
		const size_t n = strlen(known);

		names[i] = keys[i].name;
		snprintf(known + n, sizeof(known) - n, "%s%s",
			 i > 0 ? ", " : "", keys[i].name);
	}
	nearest = value_nearest(name, names);
	if (nearest != NULL)
		return yaml_wrong(reader, node,
				  "unknown key '%.40s'; did you mean '%s'?",
				  name, nearest);
	return yaml_wrong(reader, node, "unknown key '%.40s'; valid: %s", name,
			  known);
}

/* The second of two equal keys would win silently. */
static int check_duplicates(struct yaml_reader *reader, yaml_node_t *node,
			    const yaml_node_pair_t *pair, const char *name)
{
	for (yaml_node_pair_t *other = node->data.mapping.pairs.start;
	     other < pair; other++) {
		yaml_node_t *key = node_of(reader, other->key);

		if (key->type == YAML_SCALAR_NODE &&
		    strcmp((char *)key->data.scalar.value, name) == 0)
			return yaml_wrong(
				reader, node_of(reader, pair->key),
				"'%.40s' is given twice, first on line %zu",
				name, key->start_mark.line + 1);
	}
	return 0;
}

static int take_pair(struct yaml_reader *reader, const struct yaml_key *keys,
		     yaml_node_t *node, const yaml_node_pair_t *pair, void *to)
{
	yaml_node_t *name_node = node_of(reader, pair->key);
	const char *name = text_of(reader, name_node, "a key");
	const struct yaml_key *key = keys;
	int err;

	if (name == NULL)
		return -EINVAL;
	while (key->name != NULL && strcmp(key->name, name) != 0)
		key++;
	/* Unknown keys first, which leaves few for duplicates. */
	if (key->name == NULL)
		return complain_unknown(reader, keys, name_node, name);
	err = check_duplicates(reader, node, pair, name);
	if (err < 0)
		return err;
	return key->take(reader, key, node_of(reader, pair->value), to);
}

/* Whether to go on after err, for the errors that follow. */
static bool goes_on(const struct yaml_reader *reader, int err)
{
	return err == 0 ||
	       (err == -EINVAL && reader->errors->n < YAML_MAX_ERRORS);
}

int yaml_take_keys(struct yaml_reader *reader, const struct yaml_key *keys,
		   yaml_node_t *node, void *to)
{
	int err = 0, now = 0;

	if (node->type != YAML_MAPPING_NODE)
		return yaml_wrong(reader, node,
				  "must be a mapping, such as '%s: ...'",
				  keys[0].name);
	for (yaml_node_pair_t *pair = node->data.mapping.pairs.start;
	     pair < node->data.mapping.pairs.top && goes_on(reader, now);
	     pair++) {
		now = take_pair(reader, keys, node, pair, to);
		err = now < 0 ? now : err;
	}
	for (; keys->name != NULL; keys++)
		if (keys->is_needed &&
		    yaml_find(reader, node, keys->name) == NULL)
			err = yaml_wrong(reader, node, "'%s' is missing",
					 keys->name);
	return err;
}

int yaml_read(const char *name, const char *bytes, size_t n_bytes,
	      const struct yaml_key *keys, const char *empty,
	      yaml_check_fn *check, void *to, struct yaml_errors *ret_errors)
{
	struct yaml_reader reader;
	yaml_node_t *root;
	int err = yaml_open(&reader, name, bytes, n_bytes, ret_errors);

	if (err < 0)
		return err;
	root = yaml_root(&reader);
	err = root == NULL ?
		      yaml_fail(ret_errors, -EINVAL, "%.120s:%s", name, empty) :
		      yaml_take_keys(&reader, keys, root, to);
	if (err == 0)
		err = check(&reader, to);
	if (err == -ENOMEM)
		yaml_fail(ret_errors, err, "%.120s: no memory", name);
	yaml_close(&reader);
	return err;
}

int yaml_take_mapping(struct yaml_reader *reader, const struct yaml_key *key,
		      yaml_node_t *node, void *to)
{
	return yaml_take_keys(reader, key->keys, node,
			      (char *)to + key->offset);
}

int yaml_take_value(struct yaml_reader *reader, const struct yaml_key *key,
		    yaml_node_t *node, void *to)
{
	const char *text = text_of(reader, node, key->name);
	struct mr_reason why;

	if (text == NULL)
		return -EINVAL;
	if (!key->read(text, (char *)to + key->offset, &why))
		return yaml_wrong(reader, node, "%s: %s", key->name, why.text);
	return 0;
}

int yaml_take_each(struct yaml_reader *reader, const struct yaml_key *key,
		   yaml_node_t *node, void *to)
{
	yaml_node_t *item;
	int err = 0, now = 0;

	for (uint32_t i = 0; goes_on(reader, now) &&
			     (item = yaml_item(reader, node, i)) != NULL;
	     i++) {
		now = yaml_take_value(reader, key, item, to);
		err = now < 0 ? now : err;
	}
	return err;
}

static int take_text(const struct yaml_key *key, const char *text, void *to,
		     struct yaml_errors *errors)
{
	yaml_node_t node = { .type = YAML_SCALAR_NODE };
	struct yaml_reader reader = { .errors = errors };

	node.data.scalar.value = (yaml_char_t *)text;
	node.data.scalar.length = strlen(text);
	return key->take(&reader, key, &node, to);
}

void yaml_take_preset(const struct yaml_key *key, void *to)
{
	take_text(key, key->preset, to, NULL);
}

/* fdb-limit is fdb_limit. */
static bool is_option(const char *name, const char *key)
{
	while (*name != '\0' && (*name == '-' ? '_' : *name) == *key) {
		name++;
		key++;
	}
	return *name == '\0' && *key == '\0';
}

int yaml_take_option(const struct yaml_key *keys, const char *name,
		     const char *text, void *to, struct mr_reason *ret_why)
{
	struct yaml_errors errors = { 0 };
	struct yaml_key one;
	char option[40];
	int err;

	while (keys->name != NULL && !is_option(name, keys->name))
		keys++;
	if (keys->name == NULL)
		return -ENOENT;
	one = *keys;
	snprintf(option, sizeof(option), "--%s", name);
	one.name = option;
	err = take_text(&one, text, to, &errors);
	if (err < 0)
		*ret_why = errors.list[0];
	return err;
}

int yaml_take_list(struct yaml_reader *reader, const struct yaml_key *key,
		   yaml_node_t *node, void *to)
{
	struct yaml_key one = *key;
	void **list = (void **)((char *)to + key->offset);
	uint32_t *n = (uint32_t *)((char *)to + key->n_offset);
	const uint32_t n_items = count_items(node);
	int err = 0, now = 0;

	if (n_items == 0)
		return yaml_wrong(reader, node, "%s: empty; remove it",
				  key->name);
	if (n_items > key->max)
		return yaml_wrong(reader, node, "%s: %u entries, more than %u",
				  key->name, n_items, key->max);
	*list = calloc(n_items, key->n_bytes);
	if (*list == NULL)
		return -ENOMEM;
	one.offset = 0; /* in the item */
	if (key->take_item == NULL)
		one.take_item = yaml_take_value;
	/* On error, what there is of an item is freed with the rest. */
	for (*n = 0; *n < n_items && goes_on(reader, now); (*n)++) {
		now = one.take_item(reader, &one, yaml_item(reader, node, *n),
				    (char *)*list + *n * key->n_bytes);
		err = now < 0 ? now : err;
	}
	return err;
}

/* YAML has yes, Yes and YES, but not yEs. */
static bool is_spelling_of(const char *text, const char *word)
{
	char upper[8] = "", capital[8];

	for (size_t i = 0; word[i] != '\0'; i++)
		upper[i] = (char)(word[i] - 'a' + 'A');
	snprintf(capital, sizeof(capital), "%c%s", upper[0], word + 1);
	return strcmp(text, word) == 0 || strcmp(text, upper) == 0 ||
	       strcmp(text, capital) == 0;
}

int yaml_take_bool(struct yaml_reader *reader, const struct yaml_key *key,
		   yaml_node_t *node, void *to)
{
	static const char *const words[] = { "no",  "yes", "false",
					     "true", "off", "on" };
	const char *text = text_of(reader, node, key->name);
	bool value;

	if (text == NULL)
		return -EINVAL;
	for (uint32_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (!is_spelling_of(text, words[i]))
			continue;
		value = i % 2 == 1;
		memcpy((char *)to + key->offset, &value, sizeof(value));
		return 0;
	}
	return yaml_wrong(reader, node, "%s: '%.40s' is not yes or no",
			  key->name, text);
}

int yaml_take_word(struct yaml_reader *reader, const struct yaml_key *key,
		   yaml_node_t *node, void *to)
{
	const char *text = text_of(reader, node, key->name);
	struct mr_reason why;
	uint32_t word = 0;
	uint8_t narrow;

	if (text == NULL)
		return -EINVAL;
	if (!value_word(text, key->words, &word, &why))
		return yaml_wrong(reader, node, "%s: %s", key->name, why.text);
	narrow = (uint8_t)word;
	if (key->n_bytes == sizeof(narrow))
		memcpy((char *)to + key->offset, &narrow, sizeof(narrow));
	else
		memcpy((char *)to + key->offset, &word, sizeof(word));
	return 0;
}

int yaml_take_number(struct yaml_reader *reader, const struct yaml_key *key,
		     yaml_node_t *node, void *to)
{
	const char *text = text_of(reader, node, key->name);
	struct mr_reason why;
	uint32_t value;
	uint16_t half;

	if (text == NULL)
		return -EINVAL;
	if (!value_number(text, key->min, key->max, &value, &why))
		return yaml_wrong(reader, node, "%s: %s", key->name, why.text);
	half = (uint16_t)value;
	if (key->n_bytes == sizeof(half))
		memcpy((char *)to + key->offset, &half, sizeof(half));
	else
		memcpy((char *)to + key->offset, &value, sizeof(value));
	return 0;
}

int yaml_take_text(struct yaml_reader *reader, const struct yaml_key *key,
		   yaml_node_t *node, void *to)
{
	const char *text = text_of(reader, node, key->name);

	if (text == NULL)
		return -EINVAL;
	if (text[0] == '\0' || strlen(text) >= key->max)
		return yaml_wrong(reader, node,
				  "%s: empty, or longer than %u bytes",
				  key->name, key->max - 1);
	memcpy((char *)to + key->offset, text, strlen(text) + 1);
	return 0;
}
