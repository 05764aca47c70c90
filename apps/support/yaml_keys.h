/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A YAML document read by tables: a table says which keys a mapping may have
 * and what their values are. Syntax is libyaml's. Whatever is wrong is said
 * with file and line; a key that is not known with the nearest one that is.
 */
#ifndef SUPPORT_YAML_KEYS_H
#define SUPPORT_YAML_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <yaml.h>

#include <millrace/millrace.h>

enum {
	YAML_MAX_BYTES = 1 << 20,
	YAML_MAX_KEYS = 24,
};

struct yaml_reader {
	yaml_document_t document;
	const char *name;      /* of the file, for lines */
	struct mr_reason *why; /* set when something is wrong */
};

struct yaml_key;

/* Read the value of a key: 0, -EINVAL with a reason, -ENOMEM. */
typedef int yaml_take_fn(struct yaml_reader *reader, const struct yaml_key *key,
			 yaml_node_t *node, void *to);

/* Read a text into *to: true, or false and what is wrong with it. */
typedef bool yaml_read_fn(const char *text, void *to,
			  struct mr_reason *ret_why);

struct yaml_key {
	const char *name;
	yaml_take_fn *take;
	yaml_read_fn *read;          /* of values, items of a list, and each */
	size_t offset;               /* of the member in what is filled */
	uint32_t min, max;           /* of numbers; of text: bytes */
	const struct yaml_key *keys; /* of a mapping inside; NULL at the end */
	bool is_needed;              /* in its mapping */
	size_t n_bytes;              /* of the member; of a list: of an item */
	/* Of a list: how to take an item that is no value; where the number of
	 * items is. */
	yaml_take_fn *take_item;
	size_t n_offset;
	/* What programs make of it, beside yaml_take_preset(). */
	const char *preset; /* the default, as it would be written */
	bool is_fixed;      /* once the program runs */
	uint32_t least;     /* that the source asks for */
	const char *source;
};

/*
 * Parse a document. 0, -EINVAL with the reason; the reader must be closed
 * after success. An empty one is a mapping without keys.
 */
int yaml_open(struct yaml_reader *reader, const char *name, const char *bytes,
	      size_t n_bytes, struct mr_reason *ret_why);
void yaml_close(struct yaml_reader *reader);
yaml_node_t *yaml_root(struct yaml_reader *reader);

/* Set the reason, with file and line of the node; returns -EINVAL. */
int yaml_wrong(struct yaml_reader *reader, const yaml_node_t *node,
	       const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Fill what `to` points to from a mapping. */
int yaml_take_keys(struct yaml_reader *reader, const struct yaml_key *keys,
		   yaml_node_t *node, void *to);

/* The text of a scalar; NULL, with the reason, for anything else. */
const char *yaml_text(struct yaml_reader *reader, yaml_node_t *node,
		      const char *what);

/*
 * The nodes of a list, one after the other: a list of one may be written
 * without brackets. NULL behind the last one.
 */
yaml_node_t *yaml_item(struct yaml_reader *reader, yaml_node_t *node,
		       uint32_t i);
uint32_t yaml_n_items(const yaml_node_t *node);

/* The value of a key, by name; NULL: not there. */
yaml_node_t *yaml_find(struct yaml_reader *reader, yaml_node_t *node,
		       const char *name);

/* Values for tables. */
yaml_take_fn yaml_take_value;   /* a scalar, by key->read */
yaml_take_fn yaml_take_each;    /* one or several: key->read adds each */
yaml_take_fn yaml_take_list;    /* its length is known; at most key->max */
yaml_take_fn yaml_take_mapping; /* of key->keys, into the same struct */
yaml_take_fn yaml_take_bool;    /* yes, no, true, false, on, off */
yaml_take_fn yaml_take_u16;
yaml_take_fn yaml_take_u32;
yaml_take_fn yaml_take_text; /* char [key->max] */

/* Set what the key has by default; its preset is right. */
void yaml_take_preset(const struct yaml_key *key, void *to);

#endif
