/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The dpdk: driver, where the conformance suite cannot look: EAL in a process
 * of others, and frames that go from port to port, and to DPDK, by their
 * headers.
 *
 *     driver_test TEST
 *
 * EAL starts once per process, so each test is run in one of its own.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <rte_dev.h>
#include <rte_lcore.h>

#include <millrace/experimental/port_queues.h>

#include "fixture.h"

/* ---- what EAL does to the process ---- */

enum { MAX_THREADS = 64 };

static uint32_t list_threads(char names[MAX_THREADS][32])
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	uint32_t n = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)) != NULL) {
		char path[300];
		FILE *file;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s/comm",
			 entry->d_name);
		file = fopen(path, "re");
		if (file == NULL)
			continue; /* it ended */
		assert_true(n < MAX_THREADS);
		assert_non_null(fgets(names[n], 32, file));
		fclose(file);
		n++;
	}
	closedir(dir);
	return n;
}

struct process {
	cpu_set_t cpus;
	struct sigaction actions[65];
	sigset_t mask;
};

static void look_at_process(struct process *process)
{
	memset(process, 0, sizeof(*process));
	assert_int_equal(
		sched_getaffinity(0, sizeof(process->cpus), &process->cpus), 0);
	for (int i = 1; i <= SIGRTMAX; i++)
		(void)sigaction(i, NULL, &process->actions[i]);
	pthread_sigmask(SIG_SETMASK, NULL, &process->mask);
}

static void assert_unchanged(const struct process *before)
{
	struct process now;

	look_at_process(&now);
	assert_true(CPU_EQUAL(&before->cpus, &now.cpus));
	for (int i = 1; i <= SIGRTMAX; i++) {
		const struct sigaction *was = &before->actions[i];
		const struct sigaction *is = &now.actions[i];

		assert_ptr_equal(was->sa_handler, is->sa_handler);
		assert_int_equal(was->sa_flags, is->sa_flags);
		for (int k = 1; k <= SIGRTMAX; k++)
			assert_int_equal(sigismember(&was->sa_mask, k),
					 sigismember(&is->sa_mask, k));
	}
	assert_memory_equal(&before->mask, &now.mask, sizeof(now.mask));
}

static void *see_affinity(void *opaque)
{
	assert_int_equal(sched_getaffinity(0, sizeof(cpu_set_t), opaque), 0);
	return NULL;
}

/*
 * Affinity, signal handlers and mask stay; one thread is left, EAL's own; and a
 * hundred opens and closes later it is still that.
 */
TEST(eal_leaves_the_program_alone)
{
	static char threads[MAX_THREADS][32];
	struct process before;
	cpu_set_t cpus;
	pthread_t thread;
	uint32_t n;

	look_at_process(&before);
	assert_int_equal(list_threads(threads), 1);
	mr_port_close(open_port("dpdk:net_null0"));
	assert_unchanged(&before);
	/* A thread made later is not confined either. */
	assert_int_equal(pthread_create(&thread, NULL, see_affinity, &cpus), 0);
	pthread_join(thread, NULL);
	assert_true(CPU_EQUAL(&before.cpus, &cpus));
	n = list_threads(threads);
	for (uint32_t i = 0; i < n; i++)
		print_message("thread %s", threads[i]);
	assert_int_equal(n, 2);
	for (int i = 0; i < 100; i++)
		mr_port_close(open_port("dpdk:net_null0"));
	assert_unchanged(&before);
	assert_int_equal(list_threads(threads), 2);
	assert_null(strstr(log_text, "telemetry"));
}

TEST(other_options_come_too_late)
{
	struct mr_port *port = open_port("dpdk:net_null0,eal=--no-huge -m 100");
	struct mr_port *other = NULL;
	struct mr_reason why = { .text = "" };

	mr_port_close(open_port("dpdk:net_null1,eal=--no-huge -m 100"));
	mr_port_close(open_port("dpdk:net_null1"));
	assert_int_equal(
		try_open("dpdk:net_null1,eal=--no-huge -m 200", &other, &why),
		-EALREADY);
	assert_non_null(strstr(why.text, "--no-huge -m 100"));
	mr_port_close(port);
}

/* ---- frames between ports ---- */

/* Through a port and out of another: the same bytes in the same place. */
TEST(frame_passes_by_its_address)
{
	const char *names[] = { "p", "q" };
	struct pair pair = make_pair(names, "");
	struct mr_frame sent[BURST], got[BURST];

	for (int round = 0; round < 100; round++) {
		make_frames(sent, BURST);
		send_all(pair.ports[0], sent, BURST);
		assert_int_equal(tx_stats(pair.ports[0]).pending, BURST);
		assert_int_equal(receive(pair.ports[1], got), BURST);
		assert_memory_equal(sent, got, sizeof(sent));
		assert_int_equal(tx_stats(pair.ports[0]).pending, 0);
		/* And back. */
		send_all(pair.ports[1], got, BURST);
		assert_int_equal(receive(pair.ports[0], sent), BURST);
		assert_memory_equal(sent, got, sizeof(sent));
		mr_frame_free_bulk(cache, sent, BURST);
		assert_int_equal(n_in_flight(), 0);
	}
	end_pair(&pair);
}

/* To both ports at once: two headers for each page, and one page less each. */
TEST(clone_to_two_ports_has_two_headers)
{
	const char *names[] = { "f", "g" };
	struct pair pair = make_pair(names, "");
	struct mr_frame sent[BURST], got[2][BURST];

	for (int round = 0; round < 100; round++) {
		make_frames(sent, BURST);
		assert_int_equal(mr_frame_ref(cache, sent, BURST), 0);
		for (int i = 0; i < 2; i++)
			send_all(pair.ports[i], sent, BURST);
		for (int i = 0; i < 2; i++) {
			assert_int_equal(receive(pair.ports[1 - i], got[i]),
					 BURST);
			assert_memory_equal(sent, got[i], sizeof(sent));
		}
		for (int i = 0; i < 2; i++)
			assert_int_equal(tx_stats(pair.ports[i]).pending, 0);
		assert_int_equal(n_in_flight(), BURST);
		mr_frame_free_bulk(cache, got[0], BURST);
		/* One owner is left, which may write, and send as it is. */
		assert_int_equal(mr_frame_push(cache, &got[1][0], 8), 0);
		send_all(pair.ports[0], got[1], BURST);
		assert_int_equal(receive(pair.ports[1], got[0]), BURST);
		mr_frame_free_bulk(cache, got[0], BURST);
		assert_int_equal(n_in_flight(), 0);
	}
	end_pair(&pair);
}

/* One frame's owners, until the port takes less than it is given. */
static uint32_t send_some(struct mr_port *port, const struct mr_frame *frames,
			  uint32_t n)
{
	uint32_t n_sent = 0, n_asked, k;

	do {
		n_asked = n - n_sent < BURST ? n - n_sent : BURST;
		k = mr_tx_burst(mr_port_txq(port, 0), cache, frames, n_asked);
		n_sent += k;
	} while (k == n_asked && n_sent < n);
	return n_sent;
}

/* All extra headers are under way: the rest stays the caller's, until some are
 * back. */
TEST(no_spare_header_is_back_pressure)
{
	const char *names[] = { "b", "c" };
	struct pair pair = make_pair(names, "");
	enum { N_SPARES = 64 + MR_MAX_SEGS, N_CLONES = N_SPARES + BURST };
	struct mr_frame sent[BURST], got[BURST];
	uint32_t n_got = 0, n;

	/* Its ring takes 256, and it has extra headers for one of 64. */
	mr_port_close(pair.ports[0]);
	pair.ports[0] = open_port("dpdk:net_ring_b,ring=64");
	make_frames(sent, 1);
	for (int i = 0; i < N_CLONES; i++)
		assert_int_equal(mr_frame_ref(cache, sent, 1), 0);
	for (uint32_t i = 1; i < BURST; i++)
		sent[i] = sent[0];
	assert_int_equal(send_some(pair.ports[0], sent, N_CLONES), N_SPARES);
	assert_int_equal(tx_stats(pair.ports[0]).events[MR_TX_EVENT_RING_FULL],
			 1);
	/* As many as came back go, by the other port's burst. */
	assert_int_equal(receive(pair.ports[1], got), BURST);
	mr_frame_free_bulk(cache, got, BURST);
	assert_int_equal(send_some(pair.ports[0], sent, BURST), BURST);
	assert_int_equal(send_some(pair.ports[0], sent, 1), 0);
	while ((n = receive(pair.ports[1], got)) > 0) {
		mr_frame_free_bulk(cache, got, n);
		n_got += n;
	}
	assert_int_equal(n_got, N_SPARES);
	mr_frame_free_bulk(cache, sent, 1);
	assert_int_equal(n_in_flight(), 0);
	end_pair(&pair);
}

/* ---- completions on other threads ---- */

static void *free_all_registered(void *opaque)
{
	assert_int_equal(rte_thread_register(), 0);
	(void)free_sent(opaque);
	rte_thread_unregister();
	return NULL;
}

/* A thread that DPDK has a number for or not, and that has no cache of ours. */
TEST(any_thread_completes)
{
	const char *names[] = { "m", "n" };
	struct pair pair = make_pair(names, "");
	struct mr_frame sent[BURST];
	pthread_t thread;

	for (int round = 0; round < 100; round++) {
		assert_int_equal(pthread_create(&thread, NULL,
						round % 2 == 0 ?
							free_sent :
							free_all_registered,
						pair.rings[1]),
				 0);
		/* Under headers of their place, and under extra ones. */
		make_frames(sent, BURST);
		send_all(pair.ports[0], sent, BURST);
		make_frames(sent, BURST);
		assert_int_equal(mr_frame_ref(cache, sent, BURST), 0);
		send_all(pair.ports[0], sent, BURST);
		pthread_join(thread, NULL);
		assert_int_equal(n_in_flight(), BURST);
		mr_frame_free_bulk(cache, sent, BURST);
		assert_int_equal(n_in_flight(), 0);
		assert_int_equal(tx_stats(pair.ports[0]).pending, 0);
	}
	assert_int_equal(tx_stats(pair.ports[0]).completed, 100 * 2 * BURST);
	end_pair(&pair);
}

/* Somebody clones a header of ours, and frees both, in either order. */
TEST(clone_by_dpdk_keeps_the_page)
{
	const char *names[] = { "k", "l" };
	struct pair pair = make_pair(names, "");
	struct rte_mempool *theirs = rte_pktmbuf_pool_create(
		"theirs", 63, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);

	assert_non_null(theirs);
	for (int order = 0; order < 2; order++) {
		struct rte_mbuf *mbufs[2];
		struct mr_frame frame;
		void *mbuf = NULL;

		make_frames(&frame, 1);
		send_all(pair.ports[0], &frame, 1);
		assert_int_equal(rte_ring_dequeue(pair.rings[1], &mbuf), 0);
		mbufs[0] = mbuf;
		mbufs[1] = rte_pktmbuf_clone(mbufs[0], theirs);
		assert_non_null(mbufs[1]);
		rte_pktmbuf_free(mbufs[order]);
		assert_int_equal(n_in_flight(), 1);
		assert_int_equal(*rte_pktmbuf_mtod(mbufs[1 - order], uint8_t *),
				 0);
		rte_pktmbuf_free(mbufs[1 - order]);
		assert_int_equal(n_in_flight(), 0);
		assert_int_equal(tx_stats(pair.ports[0]).pending, 0);
	}
	end_pair(&pair);
	rte_mempool_free(theirs);
}

/*
 * Who has a chain may free its segments one by one, the last one first, when
 * the ports are closed: headers and view are there until all of them are back.
 */
TEST(chain_freed_in_pieces_keeps_its_headers)
{
	enum { N_SEGS = 5 };
	const char *names[] = { "p", "q" };
	struct pair pair = make_pair(names, "");
	struct rte_mbuf *segs[N_SEGS];
	struct mr_frame sent[N_SEGS];
	void *mbuf = NULL;

	make_frames(sent, N_SEGS);
	for (int i = 0; i < N_SEGS; i++)
		sent[i].flags = i + 1 < N_SEGS ? MR_FRAME_MORE : 0;
	/* Two of them under extra headers. */
	assert_int_equal(mr_frame_ref(cache, &sent[1], 2), 0);
	send_all(pair.ports[0], sent, N_SEGS);
	assert_int_equal(rte_ring_dequeue(pair.rings[1], &mbuf), 0);
	for (int i = 0; i < N_SEGS; i++) {
		segs[i] = mbuf;
		assert_non_null(segs[i]);
		mbuf = segs[i]->next;
	}
	mr_frame_free_bulk(cache, &sent[1], 2);
	end_pair(&pair);
	for (int i = N_SEGS; i-- > 0;) {
		segs[i]->next = NULL;
		segs[i]->nb_segs = 1;
		rte_pktmbuf_free_seg(segs[i]);
		assert_int_equal(n_in_flight(), i);
		/* Whoever opens a port looks for what is complete. */
		mr_port_close(open_port("dpdk:net_null0"));
	}
}

/*
 * net_null5 takes chains, which net_null does, too, and does not say; net_null6
 * does not say that it spreads flows, which net_null does not; net_null9 does
 * it by addresses. This is in place of DPDK's, since the program comes before
 * its libraries.
 */
int rte_eth_dev_info_get(uint16_t id, struct rte_eth_dev_info *ret_info)
{
	static int (*theirs)(uint16_t, struct rte_eth_dev_info *);
	int err;

	if (theirs == NULL)
		*(void **)&theirs = dlsym(RTLD_NEXT, "rte_eth_dev_info_get");
	err = theirs(id, ret_info);
	if (err == 0 &&
	    strcmp(rte_dev_name(ret_info->device), "net_null5") == 0)
		ret_info->tx_offload_capa |= RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	if (err == 0 &&
	    strcmp(rte_dev_name(ret_info->device), "net_null6") == 0)
		ret_info->flow_type_rss_offloads = 0;
	if (err == 0 &&
	    strcmp(rte_dev_name(ret_info->device), "net_null9") == 0)
		ret_info->flow_type_rss_offloads &= RTE_ETH_RSS_IP;
	return err;
}

/* Of a port with that spec: why it is not better. */
static void assert_why(const char *spec, const char *why)
{
	struct mr_port_info info = { .size = sizeof(info) };
	struct mr_port *port = open_port(spec);

	assert_int_equal(mr_port_info(port, &info), 0);
	assert_string_equal(info.why, why);
	mr_port_close(port);
}

TEST(queues_without_rss_are_said)
{
	static const char polled[] = "no rx interrupts: polling";

	assert_why("dpdk:net_null0,ring=64,queues=2", polled);
	assert_why("dpdk:net_null6,ring=64", polled);
	assert_why("dpdk:net_null6,ring=64,queues=2",
		   "no rx interrupts: polling; no RSS: the device does "
		   "not distribute flows over its queues");
}

/* Word 0 and 39 of a device's key, and entries 0 to 3 of its table. */
static void assert_rss(uint16_t id, uint8_t first, uint8_t last,
		       const uint16_t entries[4], uint64_t fields)
{
	struct rte_eth_rss_reta_entry64 groups[2] = { { .mask = UINT64_MAX },
						      { .mask = UINT64_MAX } };
	uint8_t key[40];
	struct rte_eth_rss_conf conf = { .rss_key = key,
					 .rss_key_len = sizeof(key) };

	assert_int_equal(rte_eth_dev_rss_hash_conf_get(id, &conf), 0);
	assert_int_equal(rte_eth_dev_rss_reta_query(id, groups, 128), 0);
	assert_int_equal(key[0], first);
	assert_int_equal(key[39], last);
	assert_memory_equal(groups[1].reta, entries, 4 * sizeof(entries[0]));
	assert_int_equal(conf.rss_hf & fields, fields);
	assert_int_equal(conf.rss_hf & ~fields & RTE_ETH_RSS_UDP, 0);
}

/* A device of the program's, which stays when the port is closed. */
TEST(rss_is_in_the_device_until_the_port_is_closed)
{
	static const uint32_t table[4] = { 1, 1, 0, 1 };
	static const uint8_t key[40] = { [39] = 7 };
	const struct mr_rss_config all = { .size = sizeof(all),
					   .fields = MR_RSS_FIELDS_PORTS };
	struct mr_rss_config config = { .size = sizeof(config),
					.fields = MR_RSS_FIELDS_ADDRS,
					.key = key,
					.n_key_bytes = sizeof(key),
					.table = table,
					.n_entries = 4 };
	uint8_t before[40], after[40];
	struct rte_eth_rss_conf conf = { .rss_key = before };
	struct mr_reason why = { "" };
	struct mr_port *port;
	uint16_t id;

	mr_port_close(open_port("dpdk:net_null0,ring=64")); /* starts EAL */
	assert_int_equal(rte_eal_hotplug_add("vdev", "net_null8", ""), 0);
	assert_int_equal(rte_eth_dev_get_port_by_name("net_null8", &id), 0);
	port = open_port("dpdk:net_null8,ring=64,queues=2");
	assert_int_equal(rte_eth_dev_rss_hash_conf_get(id, &conf), 0);
	assert_int_equal(mr_port_set_rss(port, &config, &why), 0);
	assert_rss(id, 0, 7, (uint16_t[]){ 1, 1, 0, 1 }, RTE_ETH_RSS_IPV4);
	assert_int_equal(mr_port_set_rss(port, &all, &why), 0);
	assert_rss(id, 0x6d, 0x5a, (uint16_t[]){ 0, 1, 0, 1 },
		   RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_UDP);
	config.n_key_bytes = 39;
	assert_int_equal(mr_port_set_rss(port, &config, &why), -EINVAL);
	assert_non_null(
		strstr(why.text, "a key of 39 bytes: the device's has 40"));
	mr_port_close(port);
	conf.rss_key = after;
	assert_int_equal(rte_eth_dev_rss_hash_conf_get(id, &conf), 0);
	assert_memory_equal(before, after, sizeof(before));
	config = (struct mr_rss_config){ .size = sizeof(config) };
	port = open_port("dpdk:net_null8,ring=64");
	assert_int_equal(mr_port_set_rss(port, &config, &why), -ENOTSUP);
	assert_non_null(strstr(why.text, "with one queue, it has no RSS"));
	mr_port_close(port);
	assert_int_equal(rte_eal_hotplug_remove("vdev", "net_null8"), 0);
}

TEST(fields_that_a_device_does_not_hash_are_refused)
{
	struct mr_rss_config config = { .size = sizeof(config),
					.fields = MR_RSS_FIELDS_PORTS };
	struct mr_port *port = open_port("dpdk:net_null9,ring=64,queues=2");
	struct mr_reason why = { "" };

	assert_int_equal(mr_port_set_rss(port, &config, &why), -ENOTSUP);
	assert_non_null(strstr(why.text, "does not hash these fields"));
	config.fields = MR_RSS_FIELDS_ADDRS;
	assert_int_equal(mr_port_set_rss(port, &config, &why), 0);
	mr_port_close(port);
}

TEST(a_port_can_be_opened_again)
{
	struct mr_port *port = open_port("dpdk:net_null7,ring=64");
	struct mr_reason why = { "" };
	struct mr_frame frames[BURST];

	if (mr_port_reopen(port, &why) < 0)
		fail_msg("%s", why.text);
	assert_int_equal(receive(port, frames), BURST);
	mr_frame_free_bulk(cache, frames, BURST);
	mr_port_close(port);
}

/* Mempools of headers. */
static void count_headers(struct rte_mempool *mempool, void *ret_n)
{
	if (strncmp(mempool->name, "millrace_pages", 14) == 0 ||
	    strncmp(mempool->name, "millrace_spares", 15) == 0)
		++*(uint32_t *)ret_n;
}

/* Chains that are back, in a burst of the queue (net_null) or in one of another
 * port, leave nothing to wait for. */
TEST(chains_are_complete_at_close)
{
	const char *names[] = { "r", "s" };
	struct pair pair = make_pair(names, ",sg=on");
	struct mr_frame sent[BURST], got[BURST];
	struct mr_port *sink = open_port("dpdk:net_null5,ring=64");
	uint32_t n = 0;

	for (int round = 0; round < 100; round++) {
		make_frames(sent, BURST);
		for (int i = 0; i < BURST; i++)
			sent[i].flags = i % 4 < 3 ? MR_FRAME_MORE : 0;
		send_all(pair.ports[0], sent, BURST);
		assert_int_equal(receive(pair.ports[1], got), BURST);
		send_all(sink, got, BURST);
	}
	assert_int_equal(tx_stats(sink).completed, 100 * BURST / 4);
	assert_int_equal(tx_stats(sink).events[MR_TX_EVENT_EDGE_COPIED], 0);
	mr_port_close(sink);
	assert_int_equal(tx_stats(pair.ports[0]).completed, 100 * BURST / 4);
	end_pair(&pair);
	rte_mempool_walk(count_headers, &n);
	assert_int_equal(n, 0);
}
