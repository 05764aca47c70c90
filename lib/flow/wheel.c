/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wheel: a list of ids by tick, n_slots ticks round.
 *
 * The hand is the first unprocessed tick. The slots from the hand on are the
 * ticks hand .. hand + n_slots - 1; what is due before is in the first of them,
 * what is due later in the last: when the hand gets there, it moves to where it
 * then belongs, never back to the slot that is being emptied.
 *
 * Links are in the wheel's own array, by id, so that it touches no record. An
 * array of zeros is empty, so it needs no initialization.
 */
#include <errno.h>

#include <string.h>

#include <millrace/experimental/flow_hand_over.h>

#include "flow/flow.h"

enum {
	MAX_SLOTS = 1 << 20,
	MORE_LOOKS = 128, /* in addition to n, in one call */
};

/* In prev: the first of a slot, whose number is in the other bits. */
static const uint32_t first_of = UINT32_C(1) << 31;

struct link {
	uint32_t prev; /* id plus 1; or first_of and slot; 0: not set */
	uint32_t next; /* id plus 1; 0: last */
	uint32_t due;
};

struct mr_wheel {
	struct link *links; /* by id */
	uint32_t *slots;    /* first id, plus 1; 0: empty */
	uint32_t mask;      /* of ticks, to slots */
	uint32_t hand;      /* tick */
	uint32_t n;
	uint32_t n_touched; /* links up to the largest id ever set */
	uint32_t n_max;
	struct mri_space space;
	struct mr_ctx *ctx;
};

int mr_wheel_create(struct mr_ctx *ctx, uint32_t n_max, uint32_t n_slots,
		    uint32_t now_tick, struct mr_wheel **ret_wheel,
		    struct mr_reason *reterr_reason)
{
	const uint64_t n_bytes = n_max * sizeof(struct link);
	struct mr_wheel *wheel;

	if (n_max == 0 || n_max > INT32_MAX)
		return mr_fail(reterr_reason, -EINVAL,
			       "a wheel for %u ids: must be 1 to %d", n_max,
			       INT32_MAX);
	if (!mri_is_power_of_two(n_slots) || n_slots < 2 || n_slots > MAX_SLOTS)
		return mr_fail(reterr_reason, -EINVAL,
			       "a wheel of %u slots: must be a power of two, "
			       "2 to %d",
			       n_slots, MAX_SLOTS);
	wheel = mr_alloc(ctx, 0, sizeof(*wheel));
	if (wheel == NULL)
		goto no_memory;
	wheel->ctx = ctx;
	wheel->n_max = n_max;
	wheel->mask = n_slots - 1;
	wheel->hand = now_tick;
	wheel->slots = mr_alloc(ctx, 0, n_slots * sizeof(wheel->slots[0]));
	if (wheel->slots == NULL ||
	    mri_space_reserve(&wheel->space, n_bytes) < 0 ||
	    !mri_space_ready(&wheel->space, n_bytes))
		goto free_wheel;
	wheel->links = (struct link *)wheel->space.base;
	*ret_wheel = wheel;
	return 0;

free_wheel:
	mr_wheel_destroy(wheel);
no_memory:
	return mr_fail(reterr_reason, -ENOMEM,
		       "no memory for a wheel of %u slots and %u ids", n_slots,
		       n_max);
}

void mr_wheel_destroy(struct mr_wheel *wheel)
{
	if (wheel == NULL)
		return;
	mri_space_free(&wheel->space);
	mr_free(wheel->ctx, wheel->slots);
	mr_free(wheel->ctx, wheel);
}

/* Whether tick a is later than b. */
static bool is_later(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) > 0;
}

static void insert(struct mr_wheel *wheel, uint32_t id)
{
	struct link *link = &wheel->links[id];
	const uint32_t last = wheel->hand + wheel->mask;
	uint32_t tick = link->due, slot;

	if (is_later(wheel->hand, tick))
		tick = wheel->hand;
	else if (is_later(tick, last))
		tick = last;
	slot = tick & wheel->mask;
	link->prev = first_of | slot;
	link->next = wheel->slots[slot];
	if (link->next != 0)
		wheel->links[link->next - 1].prev = id + 1;
	wheel->slots[slot] = id + 1;
}

static void take_out(struct mr_wheel *wheel, uint32_t id)
{
	struct link *link = &wheel->links[id];

	if ((link->prev & first_of) != 0)
		wheel->slots[link->prev & ~first_of] = link->next;
	else
		wheel->links[link->prev - 1].next = link->next;
	if (link->next != 0)
		wheel->links[link->next - 1].prev = link->prev;
	link->prev = 0;
}

/* With the last id gone, its memory may be freed. */
static void give_back(struct mr_wheel *wheel)
{
	const uint64_t end = wheel->n_touched * sizeof(struct link);

	if (end <= MRI_SMALL_STEP)
		return;
	mri_space_give_back(&wheel->space, 0, end);
	wheel->n_touched = 0;
}

void mr_wheel_set(struct mr_wheel *wheel, uint32_t id, uint32_t due_tick)
{
	struct link *link = &wheel->links[id];

	if (link->prev != 0) {
		take_out(wheel, id);
	} else {
		wheel->n++;
		if (wheel->n_touched <= id)
			wheel->n_touched = id + 1;
	}
	link->due = due_tick;
	insert(wheel, id);
}

void mr_wheel_cancel(struct mr_wheel *wheel, uint32_t id)
{
	if (wheel->links[id].prev == 0)
		return;
	take_out(wheel, id);
	if (--wheel->n == 0)
		give_back(wheel);
}

uint32_t mr_wheel_expire(struct mr_wheel *wheel, uint32_t now_tick,
			 uint32_t *ret_ids, uint32_t n)
{
	const uint32_t n_looks = n + MORE_LOOKS;
	uint32_t n_out = 0, n_back = 0;

	if (is_later(wheel->hand, now_tick))
		return 0;
	/* There are no slots further back. */
	if (now_tick - wheel->hand > wheel->mask)
		wheel->hand = now_tick - wheel->mask;
	while (n_out < n && n_back < n_looks) {
		const uint32_t first = wheel->slots[wheel->hand & wheel->mask];

		if (first == 0) {
			if (wheel->hand == now_tick)
				break;
			wheel->hand++;
			continue;
		}
		take_out(wheel, first - 1);
		if (is_later(wheel->links[first - 1].due, now_tick)) {
			insert(wheel, first - 1);
			n_back++;
			continue;
		}
		ret_ids[n_out++] = first - 1;
		if (--wheel->n == 0)
			give_back(wheel);
	}
	return n_out;
}

uint32_t mr_wheel_n(const struct mr_wheel *wheel)
{
	return wheel->n;
}

/* ---- for another process: <millrace/experimental/flow_hand_over.h> ---- */

enum { LAYOUT = 1 };

/* Followed by the slots, and the links. */
struct image {
	uint32_t n_max, n_slots, hand, n, n_touched, reserved;
};

/* The next word after the last link is the wheel's, too: its memory is a
 * multiple of pages. */
static size_t links_bytes(uint32_t n_touched)
{
	return mri_round_up(n_touched * sizeof(struct link), 8);
}

void mr_wheel_put(const struct mr_wheel *wheel, struct mr_parcel *parcel,
		  const char *name)
{
	const struct image image = {
		.n_max = wheel->n_max,
		.n_slots = wheel->mask + 1,
		.hand = wheel->hand,
		.n = wheel->n,
		.n_touched = wheel->n_touched,
	};

	mr_parcel_put(parcel, name, LAYOUT, &image, sizeof(image));
	mr_parcel_lend(parcel, NULL, 0, wheel->slots,
		       image.n_slots * sizeof(wheel->slots[0]));
	mr_parcel_lend(parcel, NULL, 0, wheel->links,
		       links_bytes(wheel->n_touched));
}

int mr_wheel_take(struct mr_ctx *ctx, const struct mr_parcel *parcel,
		  const char *name, struct mr_wheel **inout_wheel,
		  struct mr_reason *reterr_reason)
{
	struct image image = { .n_slots = 0 };
	const void *bytes = NULL;
	size_t n_bytes = 0, n_slot_bytes;
	struct mr_wheel *wheel = *inout_wheel;
	int err = mr_parcel_find(parcel, name, LAYOUT, &bytes, &n_bytes,
				 reterr_reason);

	if (err < 0)
		return err;
	if (n_bytes >= sizeof(image))
		memcpy(&image, bytes, sizeof(image));
	n_slot_bytes = image.n_slots * sizeof(wheel->slots[0]);
	if (image.n_touched > image.n_max || image.n > image.n_touched ||
	    n_bytes != sizeof(image) + n_slot_bytes +
			       links_bytes(image.n_touched))
		return mr_fail(reterr_reason, -EPROTO,
			       "the wheel %s of the state is damaged", name);
	*inout_wheel = NULL;
	if (wheel != NULL && (wheel->n_max != image.n_max ||
			      wheel->mask + 1 != image.n_slots)) {
		mr_wheel_destroy(wheel);
		wheel = NULL;
	}
	if (wheel == NULL)
		err = mr_wheel_create(ctx, image.n_max, image.n_slots,
				      image.hand, &wheel, reterr_reason);
	if (err < 0)
		return err;
	if (wheel->n_touched > image.n_touched)
		memset(wheel->links + image.n_touched, 0,
		       (wheel->n_touched - image.n_touched) *
			       sizeof(struct link));
	wheel->hand = image.hand;
	bytes = (const uint8_t *)bytes + sizeof(image);
	memcpy(wheel->slots, bytes, n_slot_bytes);
	memcpy(wheel->links, (const uint8_t *)bytes + n_slot_bytes,
	       image.n_touched * sizeof(struct link));
	wheel->n = image.n;
	wheel->n_touched = image.n_touched;
	*inout_wheel = wheel;
	return 0;
}
