/* SPDX-License-Identifier: BSD-3-Clause */
/* What was asked for, in a document. */
#include <stdlib.h>
#include <string.h>

#include "net/describe.h"
#include "result/document.h"

static void set_number(json_t *document, const char *key, uint64_t n)
{
	document_set(document, key, json_integer((json_int_t)n));
}

json_t *path_text(const char *path)
{
	const size_t n = path != NULL ? strlen(path) : 0;
	char *text = malloc(2 * n + 1), *to = text;
	json_t *string;

	/* As everywhere in an application: no memory is the end. */
	if (text == NULL)
		abort();
	for (size_t i = 0; i < n; i++) {
		const uint8_t byte = (uint8_t)path[i];

		if (byte >= 128)
			*to++ = (char)(byte < 192 ? 0xc2 : 0xc3);
		*to++ = (char)(byte < 192 ? byte : byte - 64);
	}
	*to = '\0';
	string = path != NULL ? json_string(text) : json_null();
	free(text);
	return string;
}

/* Those of --cores; none: auto. */
static json_t *cores_asked(const struct dataplane_config *plane)
{
	json_t *cores = json_array();

	for (uint32_t i = 0; i < plane->n_cores; i++)
		json_array_append_new(cores, json_integer(plane->cores[i]));
	return cores;
}

void plane_describe(const struct dataplane_config *plane, json_t *document)
{
	static const char *const promisc[] = {
		[PROMISC_AUTO] = "auto",
		[PROMISC_ON] = "on",
		[PROMISC_OFF] = "off",
	};

	set_number(document, "queues", plane->port.n_queues);
	set_number(document, "workers", plane->n_workers);
	set_number(document, "burst", plane->burst);
	set_number(document, "ring", plane->port.n_ring);
	set_number(document, "page_bytes", plane->page_bytes);
	set_number(document, "pool_pages", plane->n_pages);
	document_set(document, "promisc",
		     json_string(promisc[plane->port.promisc]));
	document_set(document, "cores", cores_asked(plane));
}
