/* SPDX-License-Identifier: BSD-3-Clause */
/* What was asked for, in a document. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/describe.h"
#include "stream/stream.h"

static void set_number(json_t *document, const char *key, uint64_t n)
{
	document_set(document, key, json_integer((json_int_t)n));
}

static void set_seconds(json_t *document, const char *key, uint64_t ns)
{
	document_set(document, key, json_real((double)ns / 1e9));
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

void traffic_describe(const struct traffic_options *options, json_t *document)
{
	const struct tester_config *tester = &options->tester;
	const struct trial_config *trial = &options->trial;
	const uint8_t *at = tester->dst_mac;
	char rate[40], mac[18];

	rate_print(&trial->rate, rate, sizeof(rate));
	document_set(document, "rate", json_string(rate));
	document_set(document, "pace", json_string(pace_names[trial->pace]));
	if (trial->pace == PACE_BURSTS)
		set_number(document, "pace_frames",
			   trial->burst_frames > 0 ? trial->burst_frames :
						     DEFAULT_PACE_FRAMES);
	set_seconds(document, "duration_s", trial->duration_ns);
	set_number(document, "count", trial->n_frames);
	set_seconds(document, "settle_s", trial->settle_ns);
	set_seconds(document, "max_lag_s",
		    trial->max_lag_ns > 0 ? trial->max_lag_ns :
					    DEFAULT_LAG_MS * UINT64_C(1000000));
	set_number(document, "size", tester->frame_bytes);
	set_number(document, "seed", tester->seed);
	snprintf(mac, sizeof(mac), "%02x:%02x:%02x:%02x:%02x:%02x", at[0],
		 at[1], at[2], at[3], at[4], at[5]);
	document_set(document, "dst_mac",
		     json_string(tester->has_dst_mac ? mac : "auto"));
	plane_describe(&tester->plane, document);
	document_set(document, "virtual", json_boolean(tester->is_virtual));
	document_set(document, "bidirectional",
		     json_boolean(options->is_bidirectional));
	document_set(document, "unstamped", json_boolean(tester->is_unstamped));
}

bool imix_raised_print(const struct streams *streams, char *ret, size_t n_bytes)
{
	const uint32_t to = streams_raised_bytes(streams);

	if (to > 0)
		snprintf(ret, n_bytes,
			 "frames of %u bytes are too short for headers and the "
			 "stamp: %s%u instead",
			 MR_ETH_MIN_BYTES + FCS_BYTES,
			 streams_n(streams) > 1 ? "up to " : "",
			 to + FCS_BYTES);
	return to > 0;
}
