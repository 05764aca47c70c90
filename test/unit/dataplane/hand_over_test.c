/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of lib/dataplane/hand_over.c and take_over.c, and of what they use in
 * lib/base, mem, pool and port. A thread plays the new process.
 */
#include <dirent.h>
#include <pthread.h>
#include <sys/socket.h>

#include <millrace/experimental/hand_over.h>

#include "held.h"

/* ---- the new process ---- */

static struct {
	pthread_t thread;
	int fd; /* its end */
	struct mr_ctx *ctx;
	struct mr_dataplane_config config;
	struct mr_dataplane *dp; /* NULL: not open */
	int open_err, state_err, own_err;
	struct mr_reason why;
	char greeting[16];
	bool ends_early, is_late;
	bool allocates;      /* a page, before it has the state */
	bool frees, claims;  /* what the old program had: see put_mine() */
	int claim_err;
} heir;

static int old_fd;
static uint32_t n_fds_before;

static uint32_t n_fds(void)
{
	DIR *folder = opendir("/proc/self/fd");
	uint32_t n = 0;

	assert_non_null(folder);
	while (readdir(folder) != NULL)
		n++;
	closedir(folder);
	return n;
}

/* Claim the frame of the old program, and free it, if that is wanted. */
static void claim_mine(struct mr_parcel *parcel)
{
	struct mr_pool *pool = heir.dp->pool;
	const void *addrs = NULL;
	size_t n = 0;
	uint64_t addr;

	heir.claim_err = mr_pool_claim_posted(pool, parcel, "mine", NULL, 0,
					      &heir.why);
	if (heir.claim_err < 0 || !heir.frees)
		return;
	assert_int_equal(mr_parcel_find(parcel, "addr", 0, &addrs, &n, NULL),
			 0);
	memcpy(&addr, addrs, sizeof(addr));
	mr_pool_frag_free_bulk(pool, &addr, 1);
}

static void *inherit(void *arg)
{
	struct mr_cache *own = NULL;
	struct mr_parcel *parcel;
	struct mr_frame frame;

	(void)arg;
	heir.open_err = mr_dataplane_take_over(heir.fd, &heir.config, &heir.dp,
					       &heir.why);
	if (heir.open_err < 0)
		goto out;
	if (heir.ends_early)
		goto out;
	if (heir.allocates) {
		assert_int_equal(mr_cache_create(heir.dp->pool, &own, NULL), 0);
		take_frames(own, &frame, 1);
	}
	heir.state_err = mr_dataplane_take_state(heir.dp, &parcel, &heir.why);
	if (heir.state_err < 0)
		goto out;
	mr_parcel_enter(parcel, "test");
	(void)mr_parcel_get(parcel, "greeting", 7, heir.greeting,
			    sizeof(heir.greeting), NULL);
	if (heir.claims)
		claim_mine(parcel);
	if (heir.frees)
		goto out;
	if (heir.is_late)
		usleep(2500000);
	heir.own_err = mr_dataplane_own(heir.dp, &heir.why);
out:
	mr_cache_destroy(own);
	close(heir.fd);
	return NULL;
}

static void begin_heir(void)
{
	int fds[2];

	n_fds_before = n_fds();
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	old_fd = fds[0];
	heir.fd = fds[1];
	assert_int_equal(mr_ctx_create(NULL, &heir.ctx, NULL), 0);
	assert_int_equal(mr_ctx_add_driver(heir.ctx, &held_driver, NULL), 0);
	heir.config = config_of(helds);
	heir.config.ctx = heir.ctx;
	heir.dp = NULL;
	heir.open_err = heir.state_err = heir.own_err = 1;
	heir.ends_early = heir.is_late = heir.allocates = false;
	heir.frees = heir.claims = false;
}

static void start_heir(void)
{
	assert_int_equal(pthread_create(&heir.thread, NULL, inherit, NULL), 0);
}

static void end_heir(void)
{
	struct mr_reason why = { "" };

	if (mr_dataplane_close(heir.dp, &why) < 0)
		fail_msg("%s", why.text);
	mr_ctx_destroy(heir.ctx);
	close(old_fd);
}

static void put_greeting(struct mr_parcel *parcel, void *opaque)
{
	mr_parcel_enter(parcel, "test");
	mr_parcel_put(parcel, "greeting", 7, opaque, 16);
}

static void open_held(void)
{
	const struct mr_dataplane_config config = config_of(helds);

	n_closed = 0;
	is_refusing = false;
	assert_int_equal(mr_ctx_add_driver(ctx, &held_driver, NULL), 0);
	open_plane(&config);
}

static void close_old(void)
{
	struct mr_reason why = { "" };

	mr_cache_destroy(cache);
	if (mr_dataplane_close(dp, &why) < 0)
		fail_msg("%s", why.text);
	dp = NULL;
}

/* The old side, up to the end. */
static int hand_over_to_heir(struct mr_reason *why)
{
	char greeting[16] = "hello";
	int err;

	start_heir();
	/* More than it will be. */
	err = mr_dataplane_offer(dp, old_fd, 1 << 20, why);
	if (err == 0)
		err = mr_dataplane_wait_ready(dp, why);
	if (err == 0)
		err = mr_dataplane_hand_over(dp, put_greeting, greeting, why);
	pthread_join(heir.thread, NULL);
	return err;
}

PLANE_TEST(everything_is_as_it_was_in_the_new_process)
{
	struct mr_tx_stats before = { .size = sizeof(before) }, after = before;
	struct mr_frame frames[N_HELD];
	struct mr_reason why = { "" };
	uint64_t n_pages;
	uint32_t n;

	open_held();
	send_all_kinds(frames, &n);
	mr_txq_stats(txq_of(dp), &before);
	begin_heir();
	if (hand_over_to_heir(&why) < 0)
		fail_msg("%s", why.text);
	assert_int_equal(heir.own_err, 0);
	assert_string_equal(heir.greeting, "hello");
	mr_txq_stats(txq_of(heir.dp), &after);
	assert_memory_equal(&before, &after, sizeof(after));

	/* Four pages and a block of eight; frame 3 is frame 2 again. */
	n_pages = n_in_flight(heir.dp);
	assert_int_equal(n_pages, 3 + 8);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(bytes_at(heir.dp, frames[i].addr)[5],
				 i == 2 ? 4 : i + 1);
	close_old();
	assert_int_equal(n_closed, 0);
	assert_int_equal(n_in_flight(heir.dp), n_pages);
	end_heir(); /* which finds all pages */
	assert_int_equal(n_closed, 1);
}

/* Free what the device has, in the old process, which goes on. */
static void check_goes_on(void)
{
	struct held_port *port = (struct held_port *)dp->ports[0];
	struct mr_frame frame;

	assert_int_equal(n_fds(), n_fds_before);
	take_frames(cache, &frame, 1);
	assert_int_equal(mr_tx_burst(txq_of(dp), cache, &frame, 1), 1);
	mr_frag_free_bulk(cache, port->held->addrs, port->held->n);
	port->held->n = 0;
	assert_int_equal(n_in_flight(dp), 0);
	assert_int_equal(n_closed, 0);
}

PLANE_TEST(the_old_process_goes_on_if_the_new_one_ends)
{
	struct mr_frame frames[N_HELD];
	struct mr_reason why = { "" };
	uint32_t n;

	open_held();
	send_all_kinds(frames, &n);
	begin_heir();
	heir.ends_early = true;
	assert_int_equal(hand_over_to_heir(&why), -ECONNRESET);
	end_heir();
	check_goes_on();
	/* And can be handed over after that. */
	begin_heir();
	assert_int_equal(hand_over_to_heir(&why), 0);
	close_old();
	end_heir();
}

PLANE_TEST(the_old_process_goes_on_if_the_new_one_is_late)
{
	struct mr_reason why = { "" };

	open_held();
	begin_heir();
	heir.is_late = true;
	assert_int_equal(hand_over_to_heir(&why), -ETIMEDOUT);
	assert_int_equal(heir.own_err, -ECANCELED);
	end_heir();
	check_goes_on();
}

PLANE_TEST(a_port_that_refuses_is_named_on_both_sides)
{
	struct mr_reason why = { "" };

	open_held();
	is_refusing = true;
	begin_heir();
	assert_int_equal(hand_over_to_heir(&why), -ENOTSUP);
	assert_string_equal(why.text, "held:: not today");
	assert_int_equal(heir.open_err, -ECANCELED);
	assert_string_equal(heir.why.text, "held:: not today");
	end_heir();
	check_goes_on();
}

PLANE_TEST(another_configuration_needs_a_restart)
{
	static const char *const others[] = { "held:", "null:queues=2", NULL };
	struct mr_reason why = { "" };

	open_held();
	begin_heir();
	heir.config.specs = others;
	assert_int_equal(hand_over_to_heir(&why), -ECONNRESET);
	assert_int_equal(heir.open_err, -EINVAL);
	assert_non_null(strstr(heir.why.text, "needs a restart"));
	end_heir();
	begin_heir();
	heir.config.page_bytes = 2048;
	assert_int_equal(hand_over_to_heir(&why), -ECONNRESET);
	assert_int_equal(heir.open_err, -EINVAL);
	assert_non_null(strstr(heir.why.text, "page_bytes is 2048"));
	end_heir();
	check_goes_on();
}

PLANE_TEST(nothing_is_handed_over_without_an_offer)
{
	struct mr_reason why = { "" };

	open_held();
	assert_int_equal(mr_dataplane_wait_ready(dp, &why), -EINVAL);
	assert_int_equal(mr_dataplane_hand_over(dp, NULL, NULL, &why), -EINVAL);
	assert_int_equal(mr_dataplane_own(dp, &why), -EINVAL);
}

/* ---- a frame that the program has ---- */

static struct mr_frame mine;

static void put_mine(struct mr_parcel *parcel, void *opaque)
{
	(void)opaque;
	mr_parcel_enter(parcel, "test");
	mr_pool_put_posted(dp->pool, parcel, "mine", &mine.addr, 1);
	mr_parcel_put(parcel, "addr", 0, &mine.addr, sizeof(mine.addr));
}

/* Both sides check their pages, and fill those that are freed. */
static int hand_over_mine(mr_dataplane_put_fn *put, struct mr_reason *why)
{
	int err;

	heir.config.safety = MR_SAFETY_POISON;
	heir.claims = true;
	start_heir();
	err = mr_dataplane_offer(dp, old_fd, 0, why);
	if (err == 0)
		err = mr_dataplane_hand_over(dp, put, NULL, why);
	pthread_join(heir.thread, NULL);
	return err;
}

static void open_mine(void)
{
	struct mr_dataplane_config config = config_of(helds);

	n_closed = 0;
	is_refusing = false;
	assert_int_equal(mr_ctx_add_driver(ctx, &held_driver, NULL), 0);
	config.safety = MR_SAFETY_POISON;
	open_plane(&config);
	take_frames(cache, &mine, 1);
	bytes_at(dp, mine.addr)[7] = 42;
	begin_heir();
}

PLANE_TEST(the_old_process_writes_nothing_to_pages_it_frees)
{
	struct mr_reason why = { "" };

	open_mine();
	if (hand_over_mine(put_mine, &why) < 0)
		fail_msg("%s", why.text);
	assert_int_equal(heir.claim_err, 0);
	mr_frame_free_bulk(cache, &mine, 1);
	assert_int_equal(bytes_at(heir.dp, mine.addr)[7], 42);
	close_old();
	assert_int_equal(bytes_at(heir.dp, mine.addr)[7], 42);
	mr_pool_frag_free_bulk(heir.dp->pool, &mine.addr, 1);
	end_heir();
}

PLANE_TEST(the_new_process_writes_nothing_to_pages_it_does_not_own)
{
	struct mr_reason why = { "" };

	open_mine();
	heir.frees = true;
	assert_int_equal(hand_over_mine(put_mine, &why), -ECONNRESET);
	assert_int_equal(heir.claim_err, 0);
	end_heir();
	assert_int_equal(bytes_at(dp, mine.addr)[7], 42);
	mr_frame_free_bulk(cache, &mine, 1);
	check_goes_on();
}

/* A block of an order that no pool has. */
static void put_invalid(struct mr_parcel *parcel, void *opaque)
{
	const uint64_t posted = mine.addr << 8 | 255;

	(void)opaque;
	mr_parcel_enter(parcel, "test");
	mr_parcel_put(parcel, "mine", 1, &posted, sizeof(posted));
}

PLANE_TEST(invalid_references_are_refused)
{
	struct mr_reason why = { "" };

	open_mine();
	assert_int_equal(hand_over_mine(put_invalid, &why), 0);
	assert_int_equal(heir.claim_err, -EPROTO);
	mr_frame_free_bulk(cache, &mine, 1);
	close_old();
	end_heir();
}

/* ---- what is not allowed meanwhile ---- */

PLANE_TEST(a_page_must_not_be_allocated_before_the_state_is_there)
{
	struct mr_reason why = { "" };

	open_held();
	begin_heir();
	heir.allocates = true;
	assert_int_equal(hand_over_to_heir(&why), -ECONNRESET);
	assert_int_equal(heir.state_err, -EBUSY);
	end_heir();
	check_goes_on();
}

PLANE_TEST(ports_stay_as_they_are_after_an_offer)
{
	struct mr_port_config config = { .size = sizeof(config) };
	struct mr_reason why = { "" };
	struct mr_port *port;

	open_held();
	config.pool = dp->pool;
	begin_heir();
	heir.ends_early = true;
	start_heir();
	assert_int_equal(mr_dataplane_offer(dp, old_fd, 0, &why), 0);
	assert_int_equal(mr_port_open(ctx, "null:", &config, &port, &why),
			 -EBUSY);
	assert_int_equal(mr_port_reopen(dp->ports[1], &why), -EBUSY);
	pthread_join(heir.thread, NULL);
	assert_int_equal(mr_dataplane_hand_over(dp, NULL, NULL, &why),
			 -ECONNRESET);
	end_heir();
	check_goes_on();
	assert_int_equal(mr_port_reopen(dp->ports[1], &why), 0);
}

PLANE_TEST(the_ports_may_be_closed_first)
{
	struct mr_frame frames[N_HELD];
	struct mr_reason why = { "" };
	uint32_t n;

	open_held();
	send_all_kinds(frames, &n);
	begin_heir();
	assert_int_equal(hand_over_to_heir(&why), 0);
	mr_dataplane_close_ports(dp);
	close_old();
	end_heir();
}
