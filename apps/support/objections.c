/* SPDX-License-Identifier: BSD-3-Clause */
/* What a check of settings rejects. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "objections.h"
#include "text.h"

int object(struct objections *objections, const char *section, const char *key,
	   uint32_t idx, const char *format, ...)
{
	struct objection *objection;
	va_list args;

	if (objections->n == YAML_MAX_ERRORS)
		return -EINVAL;
	objection = &objections->list[objections->n++];
	*objection = (struct objection){ section, key, idx, { "" } };
	va_start(args, format);
	text_format(objection->why.text, sizeof(objection->why.text), format,
		    args);
	va_end(args);
	return -EINVAL;
}

enum parse_result objection_of_option(const struct objection *objection,
				      struct mr_reason *ret_error)
{
	const char *name =
		objection->key != NULL ? objection->key : objection->section;
	char option[40];

	snprintf(option, sizeof(option), "%s", name);
	for (char *c = option; *c != '\0'; c++)
		*c = *c == '_' ? '-' : *c;
	return parse_wrong(ret_error, "--%s: %.300s", option,
			   objection->why.text);
}

/* The node that it is about, or the closest one in the file. */
static yaml_node_t *find_node(struct yaml_reader *reader,
			      const struct objection *objection)
{
	yaml_node_t *node = yaml_root(reader);
	yaml_node_t *found = yaml_find(reader, node, objection->section);

	node = found != NULL ? found : node;
	if (objection->key != NULL)
		found = yaml_find(reader, node, objection->key);
	node = found != NULL ? found : node;
	if (objection->idx != OBJECTION_WHOLE)
		found = yaml_item(reader, node, objection->idx);
	return found != NULL ? found : node;
}

void objections_report(const struct objections *objections,
		       struct yaml_reader *reader)
{
	for (uint32_t i = 0; i < objections->n; i++) {
		const struct objection *o = &objections->list[i];

		yaml_wrong(reader, find_node(reader, o), "%s: %s%s%s",
			   o->section, o->key != NULL ? o->key : "",
			   o->key != NULL ? ": " : "", o->why.text);
	}
}
