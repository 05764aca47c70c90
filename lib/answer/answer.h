/* SPDX-License-Identifier: BSD-3-Clause */
/* Internals: what a request asks (request.c), and its answer (reply.c). */
#ifndef ANSWER_ANSWER_H
#define ANSWER_ANSWER_H

#include <stdbool.h>

#include <millrace/answer.h>
#include <millrace/neighbours.h>
#include <millrace/net.h>

#include "base/base.h"

enum {
	MRI_ANSWER_NEIGHBOURS,
	MRI_ANSWER_PINGS,
	MRI_ANSWER_ERRORS,
	MRI_ANSWER_LIMITS,
};

struct mr_answer {
	struct mr_cache *cache;
	struct mr_ctx *ctx;
	void *base; /* of the region */
	struct mr_answer_config config;
	uint64_t interval_ns;                 /* between answers */
	uint64_t ready_ns[MRI_ANSWER_LIMITS]; /* of the last of a burst */
	uint64_t now_ns;                      /* 0: not read in this burst */
	uint64_t counts[MR_ANSWER_COUNTS];
	uint32_t ipv4[]; /* then those of IPv6 */
};

/* What a frame is: an enum mr_answer_count to answer or to drop, or this. */
enum { MRI_ANSWER_NOT_US = MR_ANSWER_COUNTS };

/* One frame, its metadata or NULL, and where its headers are. */
struct mri_request {
	struct mr_frame *frames;
	struct mr_meta *meta;
	uint8_t *bytes;
	struct mr_net_view view;
};

/* Of a frame of n entries: MR_ANSWER_ARP to _ECHO6, _MALFORMED, or
 * MRI_ANSWER_NOT_US. Fills ret_request, except perhaps with the last. */
uint32_t mri_answer_classify(struct mr_answer *answer, struct mr_frame *frames,
			     struct mr_meta *meta, uint32_t n,
			     struct mri_request *ret_request);
/* With neighbours: note what a frame says of its sender. What it is now: a
 * reply that nobody else needs is MR_ANSWER_LEARNT. */
uint32_t mri_answer_learn(struct mr_answer *answer,
			  const struct mri_request *request, uint32_t what);
/* Write the answer. The frame is exclusively owned. False: no room for it. */
bool mri_answer_write(const struct mr_answer *answer,
		      struct mri_request *request, uint32_t what);
/* What an answer has of the flags and the metadata (or NULL) of a request. */
void mri_answer_clear(struct mr_frame *frame, struct mr_meta *meta);
/* A token bucket without division: a burst, then one per interval. */
bool mri_answer_take_token(struct mr_answer *answer, uint32_t limit);
/* Whether an address is of one host that may be elsewhere. */
bool mri_answer_is_host4(uint32_t addr);
bool mri_answer_is_host6(const uint8_t *addr);

/* The links of a table, and how many. */
const struct mr_neighbours_link *
mri_neighbours_links(const struct mr_neighbours *neighbours, uint32_t *ret_n);

static inline const uint8_t *mri_answer_ipv6(const struct mr_answer *answer)
{
	return (const uint8_t *)&answer->ipv4[answer->config.n_ipv4];
}

#endif
