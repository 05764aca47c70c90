/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process with a data plane "held:", "null:", for recorded_test.py:
 *
 *     held old FD     offers it to whoever has the other end of the socket
 *     held new FD     takes it over, frees all, and prints what it found
 */
#include <stdio.h>
#include <stdlib.h>

#include <millrace/experimental/hand_over.h>

#include "held.h"

static const char greeting[16] = "hello";

static void check(int err, const struct mr_reason *why)
{
	if (err == 0)
		return;
	printf("%s\n", why->text);
	exit(1);
}

static void put_greeting(struct mr_parcel *parcel, void *opaque)
{
	(void)opaque;
	mr_parcel_enter(parcel, "app");
	mr_parcel_put(parcel, "greeting", 7, greeting, sizeof(greeting));
}

static void run_old(const struct mr_dataplane_config *config, int fd)
{
	struct mr_frame frames[N_HELD];
	struct mr_reason why = { "" };
	uint32_t n;

	open_plane(config);
	send_all_kinds(frames, &n);
	check(mr_dataplane_offer(dp, fd, 0, &why), &why);
	/* The recorder does not take it. */
	(void)mr_dataplane_hand_over(dp, put_greeting, NULL, &why);
	close_plane();
}

/* The memory of the device is new, and empty. */
static void give_back(struct mr_parcel *parcel)
{
	struct held *held = ((struct held_port *)dp->ports[0])->held;
	const uint64_t *posted;
	const void *bytes = NULL;
	struct mr_reason why;
	size_t n = 0;

	mr_parcel_enter(parcel, "port/0");
	check(mr_parcel_find(parcel, "posted", 1, &bytes, &n, &why), &why);
	posted = bytes;
	for (held->n = 0; held->n < n / sizeof(posted[0]); held->n++)
		held->addrs[held->n] = posted[held->n] >> 8;
}

static void run_new(const struct mr_dataplane_config *config, int fd)
{
	struct mr_tx_stats stats = { .size = sizeof(stats) };
	struct mr_reason why = { "" };
	struct mr_parcel *parcel;
	char text[16] = "";

	check(mr_dataplane_take_over(fd, config, &dp, &why), &why);
	check(mr_dataplane_take_state(dp, &parcel, &why), &why);
	mr_parcel_enter(parcel, "app");
	check(mr_parcel_get(parcel, "greeting", 7, text, sizeof(text), &why),
	      &why);
	give_back(parcel);
	check(mr_dataplane_own(dp, &why), &why);
	mr_txq_stats(txq_of(dp), &stats);
	printf("pages %llu accepted %llu pending %llu greeting %s\n",
	       (unsigned long long)n_in_flight(dp),
	       (unsigned long long)stats.accepted,
	       (unsigned long long)stats.pending, text);
	close_plane(); /* which finds all pages */
}

int main(int argc, char **argv)
{
	struct mr_dataplane_config config = config_of(helds);
	const int fd = argc == 3 ? (int)strtoul(argv[2], NULL, 10) : -1;

	(void)ctx_set_up(NULL);
	config.ctx = ctx;
	check(mr_ctx_add_driver(ctx, &held_driver, NULL), NULL);
	if (argc == 3 && strcmp(argv[1], "old") == 0)
		run_old(&config, fd);
	else
		run_new(&config, fd);
	(void)ctx_tear_down(NULL);
	return 0;
}
