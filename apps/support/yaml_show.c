/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings as JSON: written, compared and described. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_text.h"
#include "yaml_show.h"

enum { MAX_TEXT = 64, MAX_NAME = 80 };

json_t *yaml_show_text(const char *text)
{
	return text[0] != '\0' ? json_text(text) : NULL;
}

json_t *yaml_show_list(const struct yaml_key *key, const void *items,
		       size_t n_item_bytes, uint32_t n)
{
	json_t *list = n > 0 ? json_array() : NULL;

	for (uint32_t i = 0; i < n; i++) {
		const char *item = (const char *)items + i * n_item_bytes;
		char text[MAX_TEXT];

		if (key->keys != NULL) {
			json_array_append_new(list, yaml_show(key->keys, item));
			continue;
		}
		key->write(item, text, sizeof(text));
		json_array_append_new(list, json_text(text));
	}
	return list;
}

static uint32_t number_at(const struct yaml_key *key, const char *at)
{
	uint32_t value = 0;
	uint16_t half;
	uint8_t byte;

	if (key->n_bytes == sizeof(value)) {
		memcpy(&value, at, sizeof(value));
	} else if (key->n_bytes == sizeof(half)) {
		memcpy(&half, at, sizeof(half));
		value = half;
	} else {
		memcpy(&byte, at, sizeof(byte));
		value = byte;
	}
	return value;
}

static json_t *show_value(const struct yaml_key *key, const void *from)
{
	const char *at = (const char *)from + key->offset;
	char text[MAX_TEXT] = "";
	void *list;
	uint32_t n;

	if (key->show != NULL)
		return key->show(key, from);
	if (key->take == yaml_take_mapping)
		return yaml_show(key->keys, at);
	if (key->take == yaml_take_list) {
		memcpy(&list, at, sizeof(list));
		memcpy(&n, (const char *)from + key->n_offset, sizeof(n));
		return yaml_show_list(key, list, key->n_bytes, n);
	}
	if (key->take == yaml_take_text)
		return yaml_show_text(at);
	if (key->take == yaml_take_value) {
		key->write(at, text, sizeof(text));
		return yaml_show_text(text);
	}
	n = number_at(key, at);
	if (key->take == yaml_take_bool)
		return json_boolean(n);
	if (key->take == yaml_take_word)
		return json_string(key->words[n]);
	/* A number below the minimum means that the key was not given. */
	return n >= key->min ? json_integer(n) : NULL;
}

json_t *yaml_show(const struct yaml_key *keys, const void *from)
{
	json_t *object = json_object();

	for (; keys->name != NULL; keys++) {
		json_t *value = show_value(keys, from);

		if (value != NULL)
			json_object_set_new(object, keys->name, value);
	}
	return object;
}

static void add_change(json_t *changes, const char *name,
		       const struct yaml_key *key, json_t *from, json_t *to)
{
	json_t *change = json_pack("{s:s, s:b}", "key", name, "restart",
				   (int)key->is_fixed);

	if (from != NULL)
		json_object_set(change, "from", from);
	if (to != NULL)
		json_object_set(change, "to", to);
	json_array_append_new(changes, change);
}

/* The items of a list, as the names of an object. */
static json_t *set_of(const json_t *list)
{
	json_t *set = json_object(), *item;
	size_t i;

	json_array_foreach((json_t *)list, i, item)
	{
		char *text = json_dumps(item, JSON_ENCODE_ANY | JSON_COMPACT);

		if (text != NULL)
			json_object_set(set, text, item);
		free(text);
	}
	return set;
}

/* Add changes for the items that only one of them has. False: there are none.
 */
static bool add_items(json_t *changes, const char *name,
		      const struct yaml_key *key, json_t *list, json_t *others,
		      bool is_from)
{
	json_t *set = set_of(list), *other = set_of(others), *item;
	bool has_any = false;
	const char *text;

	json_object_foreach(set, text, item)
	{
		if (json_object_get(other, text) != NULL)
			continue;
		add_change(changes, name, key, is_from ? item : NULL,
			   is_from ? NULL : item);
		has_any = true;
	}
	json_decref(set);
	json_decref(other);
	return has_any;
}

static void compare_settings(json_t *changes, const char *prefix,
			     const struct yaml_key *keys, const json_t *from,
			     const json_t *to)
{
	for (const struct yaml_key *key = keys; key->name != NULL; key++) {
		json_t *a = json_object_get(from, key->name);
		json_t *b = json_object_get(to, key->name);
		char name[MAX_NAME];
		bool has_items;

		if (json_equal(a, b) || a == b)
			continue;
		snprintf(name, sizeof(name), "%s%s%s", prefix,
			 prefix[0] != '\0' ? ": " : "", key->name);
		if (json_is_object(a) && json_is_object(b)) {
			compare_settings(changes, name, key->keys, a, b);
			continue;
		}
		has_items = (json_is_array(a) || json_is_array(b)) &&
			    add_items(changes, name, key, a, b, true) |
				    add_items(changes, name, key, b, a, false);
		if (!has_items)
			add_change(changes, name, key, a, b);
	}
}

json_t *yaml_changes(const struct yaml_key *keys, const json_t *from,
		     const json_t *to)
{
	json_t *changes = json_array();

	compare_settings(changes, "", keys, from, to);
	return changes;
}

static json_t *words_schema(const struct yaml_key *key)
{
	json_t *words = json_array();

	for (uint32_t i = 0; key->words[i] != NULL; i++)
		json_array_append_new(words, json_string(key->words[i]));
	return json_pack("{s:o}", "enum", words);
}

static json_t *object_schema(const struct yaml_key *keys);

static json_t *one_schema(const struct yaml_key *key)
{
	if (key->take == yaml_take_bool)
		return json_pack("{s:[b,b,s,s,s,s,s,s,s,s,s,s,s,s]}", "enum", 1,
				 0, "yes", "no", "on", "off", "Yes", "No", "On",
				 "Off", "YES", "NO", "ON", "OFF");
	if (key->words != NULL && key->keys != NULL)
		return json_pack("{s:[o,o]}", "anyOf", words_schema(key),
				 object_schema(key->keys));
	if (key->words != NULL)
		return words_schema(key);
	if (key->keys != NULL)
		return object_schema(key->keys);
	if (key->take == yaml_take_number)
		return json_pack("{s:s, s:I, s:I}", "type", "integer",
				 "minimum", (json_int_t)key->min, "maximum",
				 (json_int_t)key->max);
	/* A duration or a word may look like a number. */
	return json_pack("{s:[s,s]}", "type", "string", "integer");
}

static json_t *key_schema(const struct yaml_key *key)
{
	json_t *schema = one_schema(key);

	if (key->take == yaml_take_list || key->take == yaml_take_each)
		schema = json_pack("{s:[O, {s:s, s:o}]}", "anyOf", schema,
				   "type", "array", "items", schema);
	if (key->preset != NULL)
		json_object_set_new(schema, "description",
				    json_sprintf("default: %s%s", key->preset,
						 key->is_fixed ?
							 "; fixed at run time" :
							 ""));
	else if (key->is_fixed)
		json_object_set_new(schema, "description",
				    json_string("fixed at run time"));
	return schema;
}

static json_t *object_schema(const struct yaml_key *keys)
{
	json_t *properties = json_object(), *required = json_array();

	for (; keys->name != NULL; keys++) {
		json_object_set_new(properties, keys->name, key_schema(keys));
		if (keys->is_needed)
			json_array_append_new(required,
					      json_string(keys->name));
	}
	return json_pack("{s:s, s:o, s:o, s:b}", "type", "object", "properties",
			 properties, "required", required,
			 "additionalProperties", 0);
}

json_t *yaml_schema(const struct yaml_key *keys, const char *title)
{
	json_t *schema = object_schema(keys);

	json_object_set_new(
		schema, "$schema",
		json_string("http://json-schema.org/draft-07/schema#"));
	json_object_set_new(schema, "title", json_string(title));
	return schema;
}
