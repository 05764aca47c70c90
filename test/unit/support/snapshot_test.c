/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/support/snapshot.c; l2fwd/forward_test.c takes some. */
#include <millrace/driver.h>

#include "support/unit.h"

#include "nat.h"

enum { WORKERS = 2, QUEUES = 2 };

static const struct app_counters nat = {
	.program = "test",
	.drop_names = nat_drops,
	.n_drops = 2,
	.worker_rows = nat_worker,
	.n_worker_rows = N_NAT_WORKER,
	.groups = nat_groups,
	.n_groups = 2,
};

/* Of one port with two queues, and two workers; it adds up. */
struct sums {
	struct snapshot snapshot;
	struct queue_snapshot queues[QUEUES];
};

static void make_sums(struct sums *sums)
{
	struct snapshot *s = &sums->snapshot;

	*sums = (struct sums){
		.snapshot = { .app = &nat, .n_ports = 1, .n_workers = WORKERS }
	};
	strcpy(s->ports[0].info.name, "x:y");
	s->ports[0].n_queues = QUEUES;
	s->ports[0].queues = sums->queues;
	sums->queues[0].rx = (struct mr_rx_stats){
		.received = 10, .delivered = 8, .bytes = 800, .drops = { 1, 1 }
	};
	sums->queues[1].tx = (struct mr_tx_stats){ .accepted = 6,
						   .completed = 3,
						   .pending = 2,
						   .bytes = 600,
						   .drops = { [3] = 1 } };
	/* 8 delivered + 2 made = 6 accepted + 3 dropped + 1 kept */
	s->workers[0].counts[NAT_MADE] = 2;
	s->workers[1].counts[NAT_KEPT] = 1;
	s->workers[1].counts[NAT_HITS] = 77;
	s->workers[0].drops[0] = 2;
	s->workers[1].drops[1] = 1;
}

TEST(pages_not_fetched_are_counted_as_cached)
{
	const struct mr_pool_stats before = { .magazine_pages = 64,
					      .alloc_fast = 1000,
					      .alloc_refill = 2 };
	struct mr_pool_stats now = { .magazine_pages = 64,
				     .alloc_fast = 2000,
				     .alloc_refill = 7,
				     .alloc_slow = 80 };
	struct page_sources from = snapshot_page_sources(&now, &before);

	assert_int_equal(from.cache, 600);
	assert_int_equal(from.depot, 320);
	assert_int_equal(from.allocator, 80);
	/* All were fetched, and some of them not yet handed out. */
	now.alloc_fast = 1300;
	from = snapshot_page_sources(&now, &before);
	assert_int_equal(from.cache, 0);
	assert_int_equal(from.depot + from.allocator, 300);
	assert_int_equal(snapshot_page_sources(&now, NULL).cache, 1300 - 528);
}

TEST(sums_are_over_queues_and_workers)
{
	struct sums sums;
	struct totals t;

	make_sums(&sums);
	sums.snapshot.ports[0].n_device_drops = 1;
	sums.snapshot.ports[0].device_drops[0].value = 5;
	t = snapshot_totals(&sums.snapshot);
	assert_int_equal(t.rx_frames, 8);
	assert_int_equal(t.rx_bytes, 800);
	assert_int_equal(t.rx_drops, 2);
	assert_int_equal(t.tx_frames, 6);
	assert_int_equal(t.tx_bytes, 600);
	assert_int_equal(t.tx_drops, 1);
	assert_int_equal(t.device_drops, 5);
	assert_int_equal(snapshot_worker_drops(&sums.snapshot), 3);
}

static void broken(struct sums *sums, const char *says)
{
	snapshot_check_invariants(&sums->snapshot);
	assert_false(sums->snapshot.invariants_hold);
	assert_string_equal(sums->snapshot.broken_invariant, says);
	make_sums(sums);
}

TEST(a_frame_too_many_violates_an_invariant)
{
	static const char program[] =
		"workers/0: delivered + gso_added + icmp_made = "
		"accepted + drops + for_us: ";
	struct sums sums;
	char says[160];

	make_sums(&sums);
	snapshot_check_invariants(&sums.snapshot);
	assert_true(sums.snapshot.invariants_hold);
	assert_string_equal(sums.snapshot.broken_invariant, "");

	sums.queues[0].rx.received++;
	broken(&sums, "x:y/0: received = delivered + offloaded + "
		      "passed_to_kernel + rx drops: 11 is not 10");
	sums.queues[1].tx.pending--;
	broken(&sums, "x:y/1: accepted = completed + pending + tx drops: 6 is "
		      "not 5");
	sums.snapshot.workers[1].counts[NAT_MADE]++;
	snprintf(says, sizeof(says), "%s11 is not 10", program);
	broken(&sums, says);
	sums.snapshot.workers[0].counts[NAT_KEPT]++;
	snprintf(says, sizeof(says), "%s10 is not 11", program);
	broken(&sums, says);
	sums.snapshot.workers[0].drops[1]++;
	broken(&sums, says);
}

static uint32_t n_fake_stats;

/* Its names are gone with the port. */
static uint32_t fake_stats(const struct mr_port *port,
			   struct mr_named_count *ret_counts, uint32_t n)
{
	static char names[2][16];

	(void)port;
	for (uint32_t i = 0; i < n && i < n_fake_stats; i++) {
		snprintf(names[i], sizeof(names[i]), "stat%u", i);
		ret_counts[i] = (struct mr_named_count){ names[i], 10 + i };
	}
	if (n > 0 && n_fake_stats == 0)
		memset(names, 'x', sizeof(names));
	return n_fake_stats;
}

TEST(device_stats_outlive_the_port)
{
	const struct mr_driver driver = { .name = "fake",
					  .device_stats = fake_stats };
	const struct mr_driver bare = { .name = "bare" };
	struct mr_port ports[2] = { { .driver = &driver },
				    { .driver = &bare } };
	struct mr_port *const both[] = { &ports[0], &ports[1] };
	struct dataplane plane = { .n_ports = 2, .ports = both };
	struct snapshot *s = calloc(1, sizeof(*s));
	struct mr_named_count last;

	assert_non_null(s);
	s->n_ports = 2;
	n_fake_stats = 2;
	snapshot_take_device_stats(s, &plane);
	assert_int_equal(s->ports[0].n_device_stats, 2);
	assert_int_equal(s->ports[1].n_device_stats, 0);
	n_fake_stats = 0;
	fake_stats(&ports[0], &last, 1);
	assert_string_equal(s->ports[0].device_stats[1].name, "stat1");
	assert_int_equal(s->ports[0].device_stats[1].value, 11);
	/* Once more, with none: the old ones are gone. */
	snapshot_take_device_stats(s, &plane);
	assert_int_equal(s->ports[0].n_device_stats, 0);
	snapshot_destroy(s);
}
