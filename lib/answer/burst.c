/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loop over a burst. Behind frame i, which is looked at next, the array has
 * the frames that are left, then the answers, then a gap of freed entries.
 */
#include <errno.h>
#include <string.h>

#include <millrace/pool.h>

#include "answer/answer.h"

enum verdict { LEFT, ANSWERED, FREED };

static uint64_t read_clock(struct mr_answer *answer)
{
	if (answer->now_ns == 0)
		answer->now_ns = mr_ctx_now_ns(answer->ctx);
	return answer->now_ns;
}

bool mri_answer_take_token(struct mr_answer *answer, uint32_t limit)
{
	uint64_t *ready_ns = &answer->ready_ns[limit];
	const uint64_t burst_ns =
		(answer->config.burst - 1) * answer->interval_ns;

	if (*ready_ns < read_clock(answer))
		*ready_ns = answer->now_ns;
	if (*ready_ns - answer->now_ns > burst_ns)
		return false;
	*ready_ns += answer->interval_ns;
	return true;
}

uint32_t mri_answer_learn(struct mr_answer *answer,
			  const struct mri_request *request, uint32_t what)
{
	const bool is_asked =
		what == MR_ANSWER_ARP || what == MR_ANSWER_SOLICITATION;
	struct mr_net_neighbour said;

	if ((!is_asked && what != MRI_ANSWER_NOT_US) ||
	    mr_net_read_neighbour(answer->base, request->frames, &request->view,
				  &said) < 0)
		return what;
	(void)mr_neighbours_learn(answer->config.neighbours,
				  answer->config.link, &said, is_asked,
				  read_clock(answer));
	return said.is_reply && !(request->bytes[0] & 1) ? MR_ANSWER_LEARNT :
							   what;
}

static enum verdict answer_frame(struct mr_answer *answer,
				 struct mr_frame *frames, struct mr_meta *meta,
				 uint32_t n)
{
	struct mri_request request;
	uint32_t what = mri_answer_classify(answer, frames, meta, n, &request);
	int err;

	if (what == MRI_ANSWER_NOT_US)
		return LEFT;
	if (what <= MR_ANSWER_ECHO6) {
		if (!mri_answer_take_token(answer,
					   what <= MR_ANSWER_SOLICITATION ?
						   MRI_ANSWER_NEIGHBOURS :
						   MRI_ANSWER_PINGS)) {
			what = MR_ANSWER_LIMITED;
		} else {
			err = mr_frame_unshare(answer->cache, frames, n);
			if (err == -EINVAL)
				return LEFT; /* of another pool */
			request.bytes = mr_frame_data(answer->base, frames);
			if (err < 0 ||
			    !mri_answer_write(answer, &request, what))
				what = MR_ANSWER_NO_PAGE;
		}
	}
	mr_counter_add(&answer->counts[what], 1);
	if (what <= MR_ANSWER_ECHO6)
		return ANSWERED;
	mr_frame_free_bulk(answer->cache, frames, n);
	return FREED;
}

/* Move element `from` of an array to `to`, before n others. */
static void insert(void *array, size_t n_bytes, uint32_t to, uint32_t n,
		   uint32_t from)
{
	uint8_t *at = (uint8_t *)array + to * n_bytes;
	uint8_t copy[sizeof(struct mr_meta)];

	memcpy(copy, (uint8_t *)array + from * n_bytes, n_bytes);
	memmove(at + n_bytes, at, n * n_bytes);
	memcpy(at, copy, n_bytes);
}

/* Move n entries from i to `to`, before n_after others. */
static void move_entries(struct mr_frame *frames, struct mr_meta *metas,
			 uint32_t to, uint32_t n_after, uint32_t i, uint32_t n)
{
	if (to == i)
		return;
	for (uint32_t k = 0; k < n; k++) {
		insert(frames, sizeof(*frames), to + k, n_after, i + k);
		if (metas != NULL)
			insert(metas, sizeof(*metas), to + k, n_after, i + k);
	}
}

uint32_t mr_answer_burst(struct mr_answer *answer, struct mr_frame *frames,
			 struct mr_meta *metas, uint32_t n,
			 uint32_t *ret_n_replies)
{
	const uint32_t n_whole = mr_frame_n_whole(frames, n);
	uint32_t n_left = 0, n_replies = 0, len;

	answer->now_ns = 0;
	for (uint32_t i = 0; i < n_whole; i += len) {
		len = mr_frame_n_entries(&frames[i]);
		switch (answer_frame(answer, &frames[i],
				     metas != NULL ? &metas[i] : NULL, len)) {
		case LEFT:
			move_entries(frames, metas, n_left, n_replies, i, len);
			n_left += len;
			break;
		case ANSWERED:
			move_entries(frames, metas, n_left + n_replies, 0, i,
				     len);
			n_replies += len;
			break;
		case FREED:
			break;
		}
	}
	move_entries(frames, metas, n_left, n_replies, n_whole, n - n_whole);
	*ret_n_replies = n_replies;
	return n_left + n - n_whole;
}
