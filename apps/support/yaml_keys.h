/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads YAML documents by tables: a table defines the keys of a mapping and
 * their values. libyaml parses the syntax. Errors have file and line, and for
 * an unknown key the nearest known one. yaml_show.h writes what was read.
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
	YAML_MAX_ERRORS = 64,
};

/* The errors in a document, a line each. If there are too many, the last one
 * says so. */
struct yaml_errors {
	uint32_t n;
	struct mr_reason list[YAML_MAX_ERRORS];
};

struct yaml_reader {
	yaml_document_t document;
	const char *name; /* of the file, for messages; NULL: none */
	struct yaml_errors *errors;
};

struct yaml_key;

/* Read the value of a key: 0, -EINVAL with an error added, -ENOMEM. */
typedef int yaml_take_fn(struct yaml_reader *reader, const struct yaml_key *key,
			 yaml_node_t *node, void *to);

/* Read a text into *to: true, or false with a reason. */
typedef bool yaml_read_fn(const char *text, void *to,
			  struct mr_reason *ret_why);

/* For yaml_show.h. Write *from in the form that read() takes; "": none. */
typedef void yaml_write_fn(const void *from, char *ret_text, size_t n_bytes);

/* The value in the file, as JSON; NULL: none. The caller owns it. */
struct json_t;
typedef struct json_t *yaml_show_fn(const struct yaml_key *key,
				    const void *from);

struct yaml_key {
	const char *name;
	yaml_take_fn *take;
	yaml_read_fn *read;          /* for values, items of a list, and each */
	size_t offset;               /* of the member in what is filled */
	uint32_t min, max;           /* of numbers; for text: bytes */
	const struct yaml_key *keys; /* of a nested mapping; ends with NULL */
	bool is_needed;              /* in its mapping */
	size_t n_bytes;              /* of the member, or of a list's item */
	/* For a list: how to read an item that is not a scalar; where the
	 * number of items is. */
	yaml_take_fn *take_item;
	size_t n_offset;
	const char *const *words; /* of yaml_take_word(); ends with NULL */
	/* For yaml_show(), unless take is one of those below. */
	yaml_write_fn *write; /* of values and their lists */
	yaml_show_fn *show;
	/* For the program's use, and yaml_take_preset(). */
	const char *preset; /* the default, as written in a file */
	bool is_fixed;      /* at run time */
	uint32_t least;     /* recommended by source */
	const char *source;

	/* As an option of a command line, with - for _: see options.h. */
	const char *help; /* NULL: it is none */
	uint32_t group;   /* bit: only in programs with it; 0: in all */
	const char *arg;  /* name of the value in the help; NULL: a flag */
	char letter;      /* of the short option; 0: none */
};

/*
 * Parse bytes, or the file called name if bytes is NULL. 0, or -errno with an
 * error; close the reader after success. Further errors are added to
 * *ret_errors. An empty document is a mapping without keys.
 */
int yaml_open(struct yaml_reader *reader, const char *name, const char *bytes,
	      size_t n_bytes, struct yaml_errors *ret_errors);
void yaml_close(struct yaml_reader *reader);
yaml_node_t *yaml_root(struct yaml_reader *reader);

/*
 * Read a whole document into *to: open it, take the keys, and check what they
 * say, unless there were errors. empty: the error in an empty document. 0,
 * -EINVAL, -ENOMEM, or the errno of opening the file; with errors.
 */
typedef int yaml_check_fn(struct yaml_reader *reader, void *to);
int yaml_read(const char *name, const char *bytes, size_t n_bytes,
	      const struct yaml_key *keys, const char *empty,
	      yaml_check_fn *check, void *to, struct yaml_errors *ret_errors);

/* Add an error without a line; returns err. */
int yaml_fail(struct yaml_errors *errors, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Add an error, with file and line of the node; returns -EINVAL. */
int yaml_wrong(struct yaml_reader *reader, const yaml_node_t *node,
	       const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Fill in *to from a mapping. Continues after an error, to find them all. */
int yaml_take_keys(struct yaml_reader *reader, const struct yaml_key *keys,
		   yaml_node_t *node, void *to);

/*
 * The i-th node of a list; a list of one may be written without brackets. NULL
 * after the last.
 */
yaml_node_t *yaml_item(struct yaml_reader *reader, yaml_node_t *node,
		       uint32_t i);

/* The value of a key, by name; NULL: none. */
yaml_node_t *yaml_find(struct yaml_reader *reader, yaml_node_t *node,
		       const char *name);

yaml_take_fn yaml_take_value;   /* a scalar, by key->read */
yaml_take_fn yaml_take_each;    /* one or more: key->read adds each */
yaml_take_fn yaml_take_list;    /* its length is known; at most key->max */
yaml_take_fn yaml_take_mapping; /* of key->keys, into the same struct */
yaml_take_fn yaml_take_bool;    /* as in YAML: yes, no, True, OFF */
yaml_take_fn yaml_take_word;    /* index of one of key->words, 1 or 4 bytes */
yaml_take_fn yaml_take_number;  /* 2 or 4 bytes */
yaml_take_fn yaml_take_text; /* char [key->max] */

/* Rows of tables, for a member of struct S. Other members of the row may
 * follow. */
#define YAML_MEMBER(S, member)                                                 \
	.offset = offsetof(struct S, member),                                  \
	.n_bytes = sizeof(((struct S *)0)->member)
#define YAML_ROW(name_, taker, S, member, ...)                                 \
	{                                                                      \
		.name = name_, .take = taker, YAML_MEMBER(S, member),          \
		__VA_ARGS__                                                    \
	}
#define YAML_BOOL(name, S, member, ...)                                        \
	YAML_ROW(name, yaml_take_bool, S, member, __VA_ARGS__)
#define YAML_NUMBER(name, S, member, least_, most, ...)                        \
	YAML_ROW(name, yaml_take_number, S, member, .min = least_,             \
		 .max = most, __VA_ARGS__)
#define YAML_WORD(name, S, member, words_, ...)                                \
	YAML_ROW(name, yaml_take_word, S, member, .words = words_, __VA_ARGS__)
#define YAML_TEXT(name, S, member, ...)                                        \
	YAML_ROW(name, yaml_take_text, S, member,                              \
		 .max = sizeof(((struct S *)0)->member), __VA_ARGS__)
#define YAML_VALUE(name, S, member, read_, write_, ...)                        \
	YAML_ROW(name, yaml_take_value, S, member, .read = read_,              \
		 .write = write_, __VA_ARGS__)
/* Of at most n_most items, n_list of them. */
#define YAML_LIST(name_, S, list, n_most, ...)                                 \
	{                                                                      \
		.name = name_, .take = yaml_take_list, .max = n_most,          \
		.offset = offsetof(struct S, list),                            \
		.n_bytes = sizeof(((struct S *)0)->list[0]),                   \
		.n_offset = offsetof(struct S, n_##list), __VA_ARGS__          \
	}
#define YAML_OPTION(arg_, help_) .arg = arg_, .help = help_
#define YAML_END                                                               \
	{                                                                      \
		.name = NULL                                                   \
	}

/* Set the key's default; its preset is valid. */
void yaml_take_preset(const struct yaml_key *key, void *to);

/*
 * Read the value of a command-line option by its key, which has _ for -.
 * Returns 0, -EINVAL with an error, or -ENOENT: there is no such key.
 */
int yaml_take_option(const struct yaml_key *keys, const char *name,
		     const char *text, void *to, struct mr_reason *ret_why);

#endif
