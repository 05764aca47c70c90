/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of JSON for a client, until it has read them. */
#ifndef NAT_ANSWER_H
#define NAT_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mapping/map.h"

struct app;

struct nat_answer {
	char *bytes;
	size_t n, n_max; /* bytes to send, and capacity */
	bool is_broken;  /* no memory: sending fails */
};

void nat_answer_free(struct nat_answer *answer);
void nat_answer_session(struct nat_answer *answer,
			const struct nat_session *session);
void nat_answer_stats(struct nat_answer *answer, struct app *app);
void nat_answer_error(struct nat_answer *answer, const char *text);
/* {"end":true,"listed":3} */
void nat_answer_end(struct nat_answer *answer, const char *what, uint64_t n,
		    bool is_saved);

/* Send as much as the socket takes: 0, or -1 if the connection is broken. */
int nat_answer_send(struct nat_answer *answer, int fd);

#endif
