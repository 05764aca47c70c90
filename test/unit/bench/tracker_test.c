/* SPDX-License-Identifier: BSD-3-Clause */
/* Sequence numbers: what is new, what came twice, late, or too late. */
#include <pthread.h>
#include <stdlib.h>

#include "net/tracker.h"
#include "support/test.h"

static struct tracker tracker;
static struct track track;

/* How far below the highest number of a lane others are still known. */
static uint64_t window_of(const struct tracker *of)
{
	return (uint64_t)TRACKER_NUMBERS << of->window_bits;
}

static int open_one(void **state)
{
	(void)state;
	track = (struct track){ 0 };
	return tracker_open(&tracker, 2, false);
}

static int close_it(void **state)
{
	(void)state;
	tracker_close(&tracker);
	return 0;
}

TEST_WITH(open_one, close_it, numbers_in_order_are_all_new)
{
	for (uint64_t i = 0; i < 3 * window_of(&tracker); i++)
		track_see(&track, &tracker, 1, i);
	assert_int_equal(track.unique, 3 * window_of(&tracker));
	assert_int_equal(track.next, 3 * window_of(&tracker));
	assert_int_equal(track.duplicates + track.reordered + track.too_old, 0);
	assert_int_equal(track.longest_gap, 0);
}

TEST_WITH(open_one, close_it, lanes_are_tracked_separately)
{
	struct track other = { 0 };

	track_see(&track, &tracker, 0, 5);
	track_see(&other, &tracker, 1, 5);
	assert_int_equal(track.unique, 1);
	assert_int_equal(other.unique, 1);
	track_see(&other, &tracker, 1, 5);
	assert_int_equal(other.duplicates, 1);
}

TEST_WITH(open_one, close_it, each_fault_has_its_counter)
{
	track_see(&track, &tracker, 0, 0);
	track_see(&track, &tracker, 0, 3); /* 1 and 2 are missing */
	track_see(&track, &tracker, 0, 2); /* late */
	track_see(&track, &tracker, 0, 2); /* twice: not late again */
	track_see(&track, &tracker, 0, 3); /* twice */
	track_see(&track, &tracker, 0, 4);
	assert_int_equal(track.unique, 4);
	assert_int_equal(track.reordered, 1);
	assert_int_equal(track.duplicates, 2);
	assert_int_equal(track.longest_gap, 2);
	assert_int_equal(track.next, 5);
}

TEST_WITH(open_one, close_it, numbers_behind_the_window_are_unknown)
{
	const uint64_t window = window_of(&tracker);

	track_see(&track, &tracker, 0, 5);
	track_see(&track, &tracker, 0, window + 4); /* 5's word is kept */
	track_see(&track, &tracker, 0, 6);
	assert_int_equal(track.reordered, 0); /* 6: its place is taken */
	assert_int_equal(track.too_old, 1);
	track_see(&track, &tracker, 0, window - 1);
	assert_int_equal(track.reordered, 1);
	assert_int_equal(track.unique, 3);
}

/* The highest numbers that a stamp has room for. */
TEST_WITH(open_one, close_it, numbers_of_48_bits_fit)
{
	const uint64_t last = (1ull << 48) - 1;

	track_see(&track, &tracker, 0, last - 1);
	track_see(&track, &tracker, 0, last);
	track_see(&track, &tracker, 0, last);
	assert_int_equal(track.unique, 2);
	assert_int_equal(track.duplicates, 1);
}

/* What a bitmap of everything says, about a stream with all faults. */
TEST_WITH(open_one, close_it, tracker_agrees_with_a_bitmap)
{
	enum { N = 200000 };
	uint8_t *seen = calloc(N + 100, 1);
	uint64_t unique = 0, duplicates = 0, reordered = 0, next = 0;

	srand(3);
	for (uint64_t i = 0; i < N; i++) {
		const uint64_t back = (uint64_t)rand() % 100;
		const uint64_t seq = i > back && rand() % 4 == 0 ? i - back : i;

		if (rand() % 50 == 0)
			continue;
		track_see(&track, &tracker, 0, seq);
		if (seen[seq]) {
			duplicates++;
			continue;
		}
		seen[seq] = 1;
		unique++;
		reordered += seq < next;
		next = seq >= next ? seq + 1 : next;
	}
	free(seen);
	assert_int_equal(track.unique, unique);
	assert_int_equal(track.duplicates, duplicates);
	assert_int_equal(track.reordered, reordered);
	assert_int_equal(track.too_old, 0);
}

enum { N_THREADS = 4, N_NUMBERS = 200000 };

static void *see_all(void *own)
{
	for (uint64_t i = 0; i < N_NUMBERS; i++)
		track_see(own, &tracker, 0, i);
	return NULL;
}

/* Each number is new to one of the receivers, and to one only, as long as none
 * falls a window behind. */
TEST_WITH(open_one, close_it, a_number_is_new_to_one_receiver_only)
{
	struct track tracks[N_THREADS] = { 0 };
	pthread_t threads[N_THREADS];
	uint64_t unique = 0, duplicates = 0, too_old = 0;

	tracker_close(&tracker);
	assert_int_equal(tracker_open(&tracker, 1, true), 0);
	assert_true(N_NUMBERS <= window_of(&tracker));
	for (int i = 0; i < N_THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, see_all, &tracks[i]),
			0);
	for (int i = 0; i < N_THREADS; i++) {
		pthread_join(threads[i], NULL);
		unique += tracks[i].unique;
		duplicates += tracks[i].duplicates;
		too_old += tracks[i].too_old;
	}
	assert_int_equal(unique, N_NUMBERS);
	assert_int_equal(duplicates, (N_THREADS - 1) * N_NUMBERS);
	assert_int_equal(too_old, 0);
}
