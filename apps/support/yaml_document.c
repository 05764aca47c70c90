/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens YAML documents and collects errors. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "text.h"
#include "yaml_keys.h"

enum { MAX_LEVELS = 16, MAX_ANCHORS = 64 };

int yaml_fail(struct yaml_errors *errors, int err, const char *format, ...)
{
	struct mr_reason *why;
	va_list args;

	if (errors->n == YAML_MAX_ERRORS)
		return err;
	why = &errors->list[errors->n++];
	if (errors->n == YAML_MAX_ERRORS)
		format = "there are more errors; correct these first";
	va_start(args, format);
	text_format(why->text, sizeof(why->text), format, args);
	va_end(args);
	/* A file may contain any byte; a message is one line. */
	for (char *c = why->text; *c != '\0'; c++)
		if ((unsigned char)*c < ' ' || *c == 127)
			*c = '?';
	return err;
}

static int fail_at(struct yaml_reader *reader, size_t line, const char *text)
{
	if (reader->name == NULL)
		return yaml_fail(reader->errors, -EINVAL, "%s", text);
	return yaml_fail(reader->errors, -EINVAL, "%.120s:%zu: %.240s",
			 reader->name, line, text);
}

int yaml_wrong(struct yaml_reader *reader, const yaml_node_t *node,
	       const char *format, ...)
{
	char text[241];
	va_list args;

	va_start(args, format);
	text_format(text, sizeof(text), format, args);
	va_end(args);
	return fail_at(reader, node->start_mark.line + 1, text);
}

static int fail_parse(struct yaml_reader *reader, const yaml_parser_t *parser)
{
	char text[200];

	snprintf(text, sizeof(text), "not valid YAML: %s%s%s",
		 parser->problem != NULL ? parser->problem : "no memory",
		 parser->context != NULL ? ", " : "",
		 parser->context != NULL ? parser->context : "");
	return fail_at(reader, parser->problem_mark.line + 1, text);
}

/* A second document would be ignored silently. */
static int check_end(struct yaml_reader *reader, yaml_parser_t *parser)
{
	yaml_document_t next;
	yaml_node_t *root;
	int err = 0;

	if (!yaml_parser_load(parser, &next))
		return fail_parse(reader, parser);
	root = yaml_document_get_root_node(&next);
	if (root != NULL)
		err = yaml_wrong(reader, root,
				 "a second document begins here; only one is "
				 "allowed, so remove the '---'");
	yaml_document_delete(&next);
	return err;
}

static int open_parser(struct yaml_reader *reader, yaml_parser_t *parser,
		       const char *bytes, size_t n_bytes)
{
	if (!yaml_parser_initialize(parser))
		return fail_at(reader, 1, "no memory");
	yaml_parser_set_input_string(parser, (const unsigned char *)bytes,
				     n_bytes);
	return 0;
}

/* Levels that a token begins or ends. */
static int levels_of(yaml_token_type_t type)
{
	switch (type) {
	case YAML_BLOCK_SEQUENCE_START_TOKEN:
	case YAML_BLOCK_MAPPING_START_TOKEN:
	case YAML_FLOW_SEQUENCE_START_TOKEN:
	case YAML_FLOW_MAPPING_START_TOKEN:
		return 1;
	case YAML_BLOCK_END_TOKEN:
	case YAML_FLOW_SEQUENCE_END_TOKEN:
	case YAML_FLOW_MAPPING_END_TOKEN:
		return -1;
	default:
		return 0;
	}
}

/* libyaml would need minutes: its time grows with the square of either. */
static int check_limits(struct yaml_reader *reader, yaml_parser_t *parser)
{
	int n_levels = 0, n_anchors = 0;
	yaml_token_type_t type;
	yaml_token_t token;
	size_t line;

	do {
		if (!yaml_parser_scan(parser, &token))
			return fail_parse(reader, parser);
		type = token.type;
		line = token.start_mark.line + 1;
		yaml_token_delete(&token);
		n_levels += levels_of(type);
		n_anchors += type == YAML_ANCHOR_TOKEN;
		if (n_levels > MAX_LEVELS)
			return fail_at(reader, line, "more than 16 levels");
		if (n_anchors > MAX_ANCHORS)
			return fail_at(reader, line, "more than 64 anchors");
	} while (type != YAML_STREAM_END_TOKEN);
	return 0;
}

static int load_document(struct yaml_reader *reader, yaml_parser_t *parser)
{
	int err = 0;

	if (!yaml_parser_load(parser, &reader->document))
		return fail_parse(reader, parser);
	if (yaml_root(reader) != NULL)
		err = check_end(reader, parser);
	if (err < 0)
		yaml_close(reader);
	return err;
}

/* Read up to one byte more than is allowed. The caller frees the bytes. */
static int read_file(const char *path, char **ret_bytes, size_t *ret_n_bytes,
		     struct yaml_errors *errors)
{
	char *bytes = malloc(YAML_MAX_BYTES + 1);
	/* Opening a FIFO must not wait for a writer. */
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
	struct stat status;
	int err = 0;

	if (bytes == NULL || file == NULL || fstat(fd, &status) < 0) {
		err = -errno;
	} else if (!S_ISREG(status.st_mode)) {
		err = S_ISDIR(status.st_mode) ? -EISDIR : -ENODEV;
	} else {
		*ret_n_bytes = fread(bytes, 1, YAML_MAX_BYTES + 1, file);
		if (ferror(file))
			err = -errno;
	}
	if (file != NULL)
		fclose(file);
	else if (fd >= 0)
		close(fd);
	if (err == 0) {
		*ret_bytes = bytes;
		return 0;
	}
	free(bytes);
	return yaml_fail(errors, err, "%.200s: %s", path,
			 err == -ENODEV ? "not a regular file" :
					  mr_strerror(-err));
}

static int parse_document(struct yaml_reader *reader, const char *bytes,
			  size_t n_bytes)
{
	yaml_parser_t parser;
	int err;

	if (n_bytes > YAML_MAX_BYTES)
		return fail_at(reader, 1, "the file is larger than 1 MiB");
	err = open_parser(reader, &parser, bytes, n_bytes);
	if (err < 0)
		return err;
	err = check_limits(reader, &parser);
	yaml_parser_delete(&parser);
	if (err == 0)
		err = open_parser(reader, &parser, bytes, n_bytes);
	if (err < 0)
		return err;
	err = load_document(reader, &parser);
	yaml_parser_delete(&parser);
	return err;
}

int yaml_open(struct yaml_reader *reader, const char *name, const char *bytes,
	      size_t n_bytes, struct yaml_errors *ret_errors)
{
	char *read = NULL;
	int err = 0;

	reader->name = name;
	reader->errors = ret_errors;
	ret_errors->n = 0;
	if (bytes == NULL)
		err = read_file(name, &read, &n_bytes, ret_errors);
	if (err == 0)
		err = parse_document(reader, bytes != NULL ? bytes : read,
				     n_bytes);
	free(read);
	return err;
}

void yaml_close(struct yaml_reader *reader)
{
	yaml_document_delete(&reader->document);
}

yaml_node_t *yaml_root(struct yaml_reader *reader)
{
	return yaml_document_get_root_node(&reader->document);
}
