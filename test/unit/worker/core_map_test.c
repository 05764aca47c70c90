/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/worker/core_map.c: who works where, on which queues. */
#include <stdio.h>
#include <stdlib.h>

#include "support/unit_ctx.h"

#include "worker/worker.h"

enum { ANY = MR_SENDS_TO_ANY };

/* Of the test; a map is made in the test's context. */
static struct mri_core_map map;

static int map_tear_down(void **state)
{
	mri_core_map_fini(&map, ctx);
	return ctx_tear_down(state);
}

#define TEST_MAP(name) TEST_WITH(ctx_set_up, map_tear_down, name)

/* Ports on cores 10, 11, ... without nodes. */
static void make_map(const struct mri_map_port *ports, uint32_t n_ports,
		     uint32_t n_workers)
{
	map = (struct mri_core_map){ .n_workers = n_workers,
				     .n_ports = n_ports,
				     .ports = ports };
	for (uint32_t w = 0; w < n_workers; w++)
		map.cores[w] =
			(struct mri_core){ .id = 10 + w, .numa_node = -1 };
	assert_int_equal(mri_core_map_init(&map, ctx), 0);
}

TEST_MAP(queues_of_one_number_belong_to_one_worker)
{
	const struct mri_map_port ports[] = {
		{ "a", 4, 4, -1, ANY },
		{ "b", 4, 4, -1, ANY },
		{ "c", 4, 4, -1, ANY },
	};

	make_map(ports, 3, 4);
	for (uint32_t p = 0; p < 3; p++)
		for (uint32_t w = 0; w < 4; w++) {
			assert_int_equal(map.rx_owner[map.first_rxq[p] + w], w);
			assert_true(mri_map_route(&map, w, p)->is_own);
		}
}

/* Every queue has one user, every worker a way to every port it sends to. */
static void check_map(void)
{
	for (uint32_t p = 0; p < map.n_ports; p++) {
		uint32_t n_owners = 0;
		uint64_t seen = 0;

		for (uint32_t w = 0; w < map.n_workers; w++) {
			const struct mri_map_route *r =
				mri_map_route(&map, w, p);

			if (r->is_own) {
				assert_int_equal(r->owner, w);
				assert_true(r->queue_idx < map.ports[p].n_txqs);
				assert_false(seen & (1ull << r->queue_idx));
				seen |= 1ull << r->queue_idx;
				n_owners++;
			} else if (r->owner != UINT32_MAX) {
				const struct mri_map_route *end =
					mri_map_route(&map, r->owner, p);

				assert_true(end->is_own);
				assert_int_equal(end->queue_idx, r->queue_idx);
			}
		}
		assert_true(n_owners <= map.ports[p].n_txqs);
		for (uint32_t i = map.first_rxq[p]; i < map.first_rxq[p + 1];
		     i++)
			assert_true(map.rx_owner[i] < map.n_workers);
	}
}

TEST_MAP(three_one_queue_ports_on_two_workers_hand_off)
{
	const struct mri_map_port ports[] = {
		{ "a", 1, 1, -1, ANY },
		{ "b", 1, 1, -1, ANY },
		{ "c", 1, 1, -1, ANY },
	};
	uint32_t n_handoffs = 0;

	make_map(ports, 3, 2);
	check_map();
	for (uint32_t p = 0; p < 3; p++)
		for (uint32_t w = 0; w < 2; w++)
			n_handoffs +=
				!mri_map_route(&map, w, p)->is_own &&
				mri_map_route(&map, w, p)->owner != UINT32_MAX;
	assert_int_equal(n_handoffs, 3); /* one worker per port has no queue */
}

/* Worker 0 reads a and sends to b: it needs b's tx queue, not a's. */
TEST_MAP(a_pair_on_two_workers_needs_no_hand_off)
{
	const struct mri_map_port ports[] = { { "a", 1, 1, -1, 1 },
					      { "b", 1, 1, -1, 0 } };

	make_map(ports, 2, 2);
	check_map();
	assert_int_equal(map.rx_owner[0], 0);
	assert_int_equal(map.rx_owner[1], 1);
	assert_true(mri_map_route(&map, 0, 1)->is_own);
	assert_true(mri_map_route(&map, 1, 0)->is_own);
	assert_int_equal(mri_map_route(&map, 0, 0)->owner, UINT32_MAX);
	assert_int_equal(mri_map_route(&map, 1, 1)->owner, UINT32_MAX);
}

TEST_MAP(rx_queues_go_to_workers_of_their_node)
{
	const struct mri_map_port ports[] = { { "a", 2, 2, 1, ANY },
					      { "b", 2, 2, 0, ANY } };

	map = (struct mri_core_map){ .n_workers = 3,
				     .n_ports = 2,
				     .ports = ports,
				     .cores = { { 1, 0, 0, 0, false },
						{ 8, 1, 0, 0, false },
						{ 9, 1, 0, 0, false } } };

	assert_int_equal(mri_core_map_init(&map, ctx), 0);
	check_map();
	assert_int_equal(map.rx_owner[0], 1);
	assert_int_equal(map.rx_owner[1], 2);
	assert_int_equal(map.rx_owner[2], 0);
	assert_int_equal(map.rx_owner[3], 0);
}

TEST_MAP(a_port_without_tx_queue_is_no_destination)
{
	const struct mri_map_port ports[] = { { "a", 1, 0, -1, ANY },
					      { "b", 1, 1, -1, ANY } };

	make_map(ports, 2, 1);
	check_map();
	assert_false(mri_map_route(&map, 0, 0)->is_own);
	assert_int_equal(mri_map_route(&map, 0, 0)->owner, UINT32_MAX);
	assert_true(mri_map_route(&map, 0, 1)->is_own);
}

TEST_MAP(every_number_of_ports_and_workers_has_a_map)
{

	for (uint32_t n_workers = 1; n_workers <= 5; n_workers++)
		for (uint32_t n_rxqs = 0; n_rxqs <= 5; n_rxqs++)
			for (uint32_t n_txqs = 0; n_txqs <= 5; n_txqs++) {
				const struct mri_map_port ports[] = {
					{ "a", n_rxqs, n_txqs, -1, ANY },
					{ "b", 2, 1, 0, 2 },
					{ "c", 1, n_txqs, 1, 1 },
				};

				mri_core_map_fini(&map, ctx);
				make_map(ports, 3, n_workers);
				check_map();
			}
}

TEST(whole_cores_come_first_and_core_0_last)
{
	const struct mri_core allowed[] = {
		{ 0, 0, 0, 0, false },
		{ 1, 0, 0, 0, false },
		{ 2, 0, 1, 0, false },
		{ 3, 0, 1, 0, false },
	};
	const struct mri_map_port port = { "a", 4, 4, -1, ANY };
	struct mri_core picked[4];

	mri_pick_cores(allowed, 4, &port, 1, picked, 4);
	assert_int_equal(picked[0].id, 1);
	assert_int_equal(picked[1].id, 0);
	assert_int_equal(picked[2].id, 2);
	assert_int_equal(picked[3].id, 3);
}

TEST(cores_without_interrupts_of_the_ports_come_first)
{
	static const char *const files[] = {
		"mkdir -p %1$s/sys/class/net/eth9 %1$s/sys/class/net/eth8",
		"mkdir -p %1$s/sys/pci/msi_irqs/40 %1$s/sys/pci/msi_irqs/41",
		"mkdir -p %1$s/sys/pci/virtio0",
		"ln -s ../../../pci %1$s/sys/class/net/eth9/device",
		"ln -s ../../../pci/virtio0 %1$s/sys/class/net/eth8/device",
		"mkdir -p %1$s/proc/irq/40 %1$s/proc/irq/41",
		"echo 1 >%1$s/proc/irq/40/effective_affinity_list",
		"echo 3-4,6 >%1$s/proc/irq/41/effective_affinity_list",
	};
	const struct mri_map_port port = { "xdp:eth9", 4, 4, -1, ANY };
	static const char *const names[] = { "xdp:eth9", "xdp:eth8" };
	struct mri_core cores[8], picked[8];
	char root[] = "/tmp/core-map-XXXXXX", command[256];

	assert_non_null(mkdtemp(root));
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(command, sizeof(command), files[i], root);
		assert_int_equal(system(command), 0);
	}
	for (uint32_t k = 0; k < 2; k++) {
		for (uint32_t i = 0; i < 8; i++)
			cores[i] = (struct mri_core){ .id = i };
		mri_mark_irq_cores(root, "null:", cores, 8);
		mri_mark_irq_cores(root, names[k], cores, 8);
		for (uint32_t i = 0; i < 8; i++)
			assert_int_equal(cores[i].has_irqs,
					 i == 1 || i == 3 || i == 4 || i == 6);
	}
	mri_pick_cores(cores, 8, &port, 1, picked, 8);
	assert_int_equal(picked[0].id, 2);
	assert_int_equal(picked[3].id, 0);
	assert_int_equal(picked[4].id, 1);
	snprintf(command, sizeof(command), "rm -r %s", root);
	assert_int_equal(system(command), 0);
}

/* Rather far, or a second thread, or core 0, than beside a poller. */
TEST(cores_on_which_others_poll_come_last)
{
	const struct mri_core allowed[] = {
		{ 0, 0, 0, 0, false },
		{ 1, 1, 0, 1, false },
		{ 2, 1, 1, 0, false },
		{ 3, 1, 0, 2, false },
	};
	const struct mri_map_port port = { "a", 4, 4, 1, ANY };
	struct mri_core picked[4];

	mri_pick_cores(allowed, 4, &port, 1, picked, 4);
	assert_int_equal(picked[0].id, 2);
	assert_int_equal(picked[1].id, 0);
	assert_int_equal(picked[2].id, 1);
	assert_int_equal(picked[3].id, 3);
}

TEST(cores_are_picked_near_the_ports)
{
	const struct mri_core allowed[] = {
		{ 0, 0, 0, 0, false }, { 1, 0, 0, 0, false },
		{ 2, 0, 0, 0, false }, { 8, 1, 0, 0, false },
		{ 9, 1, 0, 0, false }, { 10, 1, 0, 0, false },
	};
	/* Two thirds of the queues are on node 1. */
	const struct mri_map_port ports[] = { { "a", 4, 4, 1, ANY },
					      { "b", 2, 2, 0, ANY } };
	struct mri_core picked[3];
	uint32_t n_near = 0;

	mri_pick_cores(allowed, 6, ports, 1, picked, 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(picked[i].numa_node, 1);
	mri_pick_cores(allowed, 6, ports, 2, picked, 3);
	for (uint32_t i = 0; i < 3; i++)
		n_near += picked[i].numa_node == 1;
	assert_int_equal(n_near, 2);
}

TEST_MAP(a_line_is_cut_off_not_overrun)
{
	const struct mri_map_port ports[] = { { "xdp:a", 1, 1, -1, ANY },
					      { "xdp:b", 1, 1, -1, ANY } };
	char text[200];

	make_map(ports, 2, 2);
	mri_core_map_line(&map, 0, text, sizeof(text));
	assert_string_equal(text, "worker 0: core 10, rx xdp:a/0, tx xdp:a/0, "
				  "hands xdp:b/0 to worker 1");
	for (uint32_t n = 1; n < sizeof(text); n++) {
		char part[201];

		memset(part, '#', sizeof(part));
		mri_core_map_line(&map, 0, part, n);
		assert_int_equal(part[n], '#');
		assert_true(strlen(part) < n);
		assert_memory_equal(part, text, strlen(part));
	}
}
