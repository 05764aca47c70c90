/* SPDX-License-Identifier: BSD-3-Clause */
/* A line of a client of the control socket: a verb and its members, or one line
 * that says what is wrong. */
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "control/app.h"
#include "control/verbs.h"
#include "fuzz.h"
#include "support/capture_filter.h"

const struct fuzz_seed fuzz_seeds[] = {
	SEED("{\"v\":1,\"verb\":\"nat sessions\"}"),
	SEED("{\"verb\":\"nat sessions\",\"filter\":\"inside=10.0.0.0/8,"
	     "port=53,proto=udp\"}"),
	SEED("{\"verb\":\"nat clear\",\"filter\":\"all\",\"now\":true}"),
	SEED("{\"verb\":\"capture\",\"port\":\"xdp:a\",\"filter\":\"tcp\","
	     "\"count\":5,\"snap\":64}"),
	SEED("{\"verb\":\"capture\",\"drops\":true}"),
	SEED("{\"verb\":\"trace\",\"filter\":\"udp port 53\",\"count\":50}"),
	SEED("{\"verb\":\"x\",\"filter\":[[{}]]}"),
	{ NULL, 0 },
};

/* libpcap's: words that it does not know must not be sent to DNS. */
int getaddrinfo(const char *name, const char *service,
		const struct addrinfo *hints, struct addrinfo **ret)
{
	(void)name;
	(void)service;
	(void)hints;
	(void)ret;
	return EAI_NONAME;
}

/* An answer is whole lines of JSON, the last of which ends it. */
static void check_answer(const struct control_request *r)
{
	const char *last;

	FUZZ_CHECK(!r->is_broken && r->n > 1 && r->bytes[r->n - 1] == '\n');
	last = memrchr(r->bytes, '\n', r->n - 1);
	last = last != NULL ? last + 1 : r->bytes;
	FUZZ_CHECK(strncmp(last, "{\"end\":true", 11) == 0 ||
		   strncmp(last, "{\"error\":", 9) == 0);
	for (size_t i = 0; i < r->n - 1; i++)
		FUZZ_CHECK((unsigned char)r->bytes[i] >= ' ' ||
			   r->bytes[i] == '\n');
}

/* What capture and trace are asked for: it can be had, or a line says why not.
 */
static void take_capture(const uint8_t *bytes, size_t n_bytes)
{
	struct control_request request = { 0 };
	struct capture_request asked;
	struct capture_filter filter = { NULL };
	struct mr_reason why = { .text = "" };
	const struct control_verb *verb =
		control_parse((const char *)bytes, n_bytes, control_verbs,
			      N_CONTROL_VERBS, &request.args, &why);
	const bool is_capture =
		verb != NULL && strcmp(verb->name, "capture") == 0;
	const bool is_trace = verb != NULL && strcmp(verb->name, "trace") == 0;

	if (is_capture || is_trace) {
		if (!(is_capture ? control_take_capture :
				   control_take_trace)(&request, &asked))
			check_answer(&request);
		else if (capture_filter_compile(asked.filter, &filter, &why) <
			 0)
			FUZZ_CHECK(why.text[0] != '\0');
		else
			capture_filter_matches(&filter, bytes,
					       (uint32_t)n_bytes,
					       (uint32_t)n_bytes);
		capture_filter_free(&filter);
	}
	json_decref(request.args);
	free(request.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	struct control_request request = { 0 };
	struct mr_reason why = { .text = "" };
	struct app app = { .n_workers = 0 };
	const struct control_verb *verb =
		control_parse((const char *)bytes, n_bytes, nat_verbs,
			      N_NAT_VERBS, &request.args, &why);

	take_capture(bytes, n_bytes);
	FUZZ_CHECK((verb == NULL) == (why.text[0] != '\0'));
	FUZZ_CHECK((verb == NULL) == (request.args == NULL));
	if (verb == NULL)
		control_fail(&request, "%s", why.text);
	/* The other one waits for a disk. */
	if (verb == &nat_verbs[0]) {
		request.state = calloc(1, verb->n_state);
		FUZZ_CHECK(verb->answer(&request, &app));
	}
	if (verb != &nat_verbs[1])
		check_answer(&request);
	json_decref(request.args);
	free(request.state);
	free(request.bytes);
	return 0;
}
