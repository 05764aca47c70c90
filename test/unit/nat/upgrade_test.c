/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of apps/nat/control/hand_over.c and datapath/hand_over.c: a translator
 * whose ports are null: takes the place of another one. A thread plays the new
 * process.
 */
#include "support/unit.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <millrace/experimental/hand_over.h>

#include "config/config.h"
#include "control/app.h"
#include "control/hand_over.h"
#include "config/keys.h"
#include "support/counter.h"
#include "support/yaml_keys.h"

enum {
	FRAME_BYTES = 60,
	IP_AT = 14,
	L4_AT = 34,
	FRAGMENT_ID = 4711,
	TIMEOUT_MS = 10000,
};

#define PORTS                                                                  \
	"inside: {port: 'null:', addresses: 10.0.0.1/24}\n"                    \
	"outside: {port: 'null:', addresses: 192.0.2.1/24,"                    \
	" gateway: 192.0.2.254}\n"

/* Linked in place of that of apps/support: a thread has the socket. */
int __wrap_upgrade_fd(void);

static _Thread_local int heir_fd = -1;

int __wrap_upgrade_fd(void)
{
	return heir_fd;
}

static struct options options;
static struct app old;

static struct {
	struct app app;
	const char *text; /* its configuration */
	int fd, err;
	struct mr_reason why;
} heir;

static int open_app(struct app *app, const char *text)
{
	struct yaml_errors errors;
	struct nat_config config;
	struct mr_reason why = { "" };
	int status;

	assert_int_equal(nat_settings_parse("test", text, strlen(text), 0,
					    &config, &errors),
			 0);
	status = app_open(app, &options, &config, &why);
	if (status != 0)
		print_message("%s\n", why.text);
	return status;
}

static void *inherit(void *unused)
{
	struct mr_parcel *parcel;

	(void)unused;
	heir_fd = heir.fd;
	heir.err = open_app(&heir.app, heir.text);
	if (heir.err == 0)
		heir.err = mr_dataplane_take_state(heir.app.plane.open, &parcel,
						   &heir.why);
	if (heir.err == 0) {
		mr_parcel_enter(parcel, "app");
		heir.err = nat_take_state(&heir.app, parcel, &heir.why);
	}
	if (heir.err == 0)
		heir.err = mr_dataplane_own(heir.app.plane.open, &heir.why);
	else
		mr_dataplane_refuse(heir.fd, heir.why.text);
	return NULL;
}

/* What is put before the state, so that it is found first. */
static struct {
	const char *name; /* NULL: nothing */
	uint8_t bytes[64];
	size_t n;
} damage;

static void put_all(struct mr_parcel *parcel, void *opaque)
{
	mr_parcel_enter(parcel, "app");
	if (damage.name != NULL)
		mr_parcel_put(parcel, damage.name, 1, damage.bytes, damage.n);
	nat_put_state(opaque, parcel);
}

/* Have an heir with this configuration. Returns what the old side says. */
static int hand_over(const char *text)
{
	pthread_t thread;
	struct mr_reason why = { "" };
	int fds[2], err;

	heir.text = text;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
	heir.fd = fds[1];
	assert_int_equal(pthread_create(&thread, NULL, inherit, NULL), 0);
	err = mr_dataplane_offer(old.plane.open, fds[0], 0, &why);
	if (err == 0)
		err = mr_dataplane_hand_over(old.plane.open, put_all, &old,
					     &why);
	pthread_join(thread, NULL);
	if (err == 0)
		nat_leave_state(&old);
	close(fds[0]);
	close(fds[1]);
	return err;
}

/* Run its workers until a condition holds. */
static void run_until(struct app *app, bool (*is_met)(const struct app *app))
{
	struct mr_reason why = { "" };

	if (mr_workers_start(app->plane.workers, nat_work, app->workers,
			     &why) < 0)
		fail_msg("%s", why.text);
	for (uint32_t i = 0; !is_met(app); i++) {
		assert_true(i < TIMEOUT_MS);
		usleep(1000);
	}
	mr_workers_stop(app->plane.workers);
	assert_int_equal(mr_workers_join(app->plane.workers, TIMEOUT_MS, &why),
			 0);
}

static uint64_t n_in_flight(const struct app *app)
{
	struct mr_pool_stats pool = { .size = sizeof(pool) };

	assert_int_equal(mr_pool_stats(app->plane.pool, &pool), 0);
	return pool.n_in_flight;
}

/* Each page must be back. */
static void close_checked(struct app *app)
{
	app_give_up(app);
	dataplane_close_ports(&app->plane);
	assert_int_equal(n_in_flight(app), 0);
	app_close(app);
}

static struct nat_path *path_of(const struct app *app)
{
	return app->workers[0].path;
}

static const struct nat_stats *stats_of(const struct app *app)
{
	return nat_path_stats(path_of(app));
}

static void put16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

/* A UDP packet of 10.0.0.2 to 203.0.113.9, or a piece of one; offset in bytes.
 * The frame's last byte is its number. */
static void receive(struct app *app, uint32_t offset, bool has_more,
		    uint8_t number)
{
	static const uint8_t head[] = { 2,    'm', 'r', 'n', 't', 0, 2, 0,
					0,    0,   0,	9,   8,	  0, 0x45, 0,
					0,    46,  0,	0,   0,	  0, 64, 17,
					0,    0,   10,	0,   0,	  2, 203, 0,
					113,  9 };
	struct mr_cache *cache = app->workers[0].worker->cache;
	struct mr_frame frame = { .len = FRAME_BYTES };
	uint8_t *bytes;

	assert_int_equal(mr_frag_alloc_bulk(cache, &frame.addr, 1, 4096), 1);
	bytes = (uint8_t *)mr_region_base(mr_pool_region(app->plane.pool)) +
		frame.addr;
	memset(bytes, 0, FRAME_BYTES);
	memcpy(bytes, head, sizeof(head));
	put16(bytes + IP_AT + 4, FRAGMENT_ID);
	put16(bytes + IP_AT + 6, offset / 8 | (has_more ? 0x2000 : 0));
	put16(bytes + IP_AT + 2, has_more ? 44 : 46); /* times 8 */
	if (offset == 0) {
		put16(bytes + L4_AT, 5000);
		put16(bytes + L4_AT + 2, 53);
		put16(bytes + L4_AT + 4, 26);
	}
	bytes[FRAME_BYTES - 1] = number;
	mr_csum_write_ipv4((void *)(bytes + IP_AT));
	nat_path_tick(path_of(app), mr_ctx_now_ns(app->plane.ctx));
	nat_burst(path_of(app), NAT_INSIDE, &frame, 1);
}

static void learn(struct app *app, uint32_t addr)
{
	const uint32_t now_s = dataplane_now_s(&app->plane);
	const uint32_t slot = nat_neighbours_add(
		app->neighbours, NAT_OUTSIDE, htonl(addr), true, now_s);

	nat_neighbours_learn(app->neighbours, slot, NAT_OUTSIDE, htonl(addr),
			     0x060504030202, now_s);
}

static bool has_sent_two(const struct app *app)
{
	return counter_get(&stats_of(app)->translated[NAT_INSIDE]) == 2;
}

TEST(frames_that_wait_for_a_neighbour_are_sent)
{
	const struct nat_stats *stats;

	assert_int_equal(open_app(&old, PORTS), 0);
	receive(&old, 0, false, 1);
	receive(&old, 0, false, 2);
	assert_int_equal(stats_of(&old)->held, 2);
	assert_int_equal(hand_over(PORTS), 0);
	assert_int_equal(heir.err, 0);
	app_close(&old);

	stats = stats_of(&heir.app);
	assert_int_equal(n_in_flight(&heir.app), 2);
	assert_int_equal(heir.app.workers[0].backlog.n[NAT_INSIDE], 2);
	learn(&heir.app, 0xc00002fe);
	run_until(&heir.app, has_sent_two);
	/* null: has frames, too. */
	assert_int_equal(stats->received[NAT_INSIDE] +
				 stats->received[NAT_OUTSIDE] -
				 stats->drops[NAT_DROP_NOT_FOR_US],
			 2);
	assert_int_equal(stats->held, 0);
	close_checked(&heir.app);
}

static bool holds_one(const struct app *app)
{
	return counter_get(&stats_of(app)->held) == 1;
}

static bool has_sent_three(const struct app *app)
{
	return counter_get(&stats_of(app)->translated[NAT_INSIDE]) == 3;
}

TEST(fragments_wait_for_the_first_one_in_the_next_process)
{
	assert_int_equal(open_app(&old, PORTS), 0);
	learn(&old, 0xc00002fe);
	receive(&old, 48, false, 3);
	assert_true(holds_one(&old));
	assert_int_equal(hand_over(PORTS), 0);
	app_close(&old);
	run_until(&heir.app, holds_one);
	receive(&heir.app, 24, true, 2);
	receive(&heir.app, 0, true, 1);
	assert_true(has_sent_three(&heir.app));
	assert_int_equal(stats_of(&heir.app)->held, 0);
	run_until(&heir.app, has_sent_three);
	close_checked(&heir.app);
}

TEST(later_fragments_follow_the_first_one)
{
	const uint8_t *bytes[2];
	struct nat_outbox *outbox;

	assert_int_equal(open_app(&old, PORTS), 0);
	learn(&old, 0xc00002fe);
	receive(&old, 0, true, 1);
	outbox = nat_path_outbox(path_of(&old), NAT_OUTSIDE);
	bytes[0] = (uint8_t *)mr_region_base(
			   mr_pool_region(old.plane.pool)) +
		   outbox->frames[outbox->n - 1].addr;
	assert_int_equal(hand_over(PORTS), 0);
	receive(&heir.app, 24, true, 2);
	receive(&heir.app, 48, false, 3);
	assert_true(has_sent_three(&heir.app));
	/* With the same id and source. */
	outbox = nat_path_outbox(path_of(&heir.app), NAT_OUTSIDE);
	bytes[1] = (uint8_t *)mr_region_base(
			   mr_pool_region(heir.app.plane.pool)) +
		   outbox->frames[outbox->n - 1].addr;
	assert_memory_equal(bytes[0] + IP_AT + 4, bytes[1] + IP_AT + 4, 2);
	assert_memory_equal(bytes[0] + IP_AT + 12, bytes[1] + IP_AT + 12, 8);
	/* One that was seen is not sent again. */
	receive(&heir.app, 0, true, 1);
	assert_int_equal(stats_of(&heir.app)->drops[NAT_DROP_FRAGMENT_WRONG],
			 1);
	app_close(&old);
	run_until(&heir.app, has_sent_three);
	close_checked(&heir.app);
}

/* Fragments that wait for a neighbour were seen, and are sent nevertheless. */
TEST(fragments_that_wait_for_a_neighbour_are_sent)
{
	assert_int_equal(open_app(&old, PORTS), 0);
	receive(&old, 0, true, 1);
	receive(&old, 24, false, 2);
	assert_int_equal(stats_of(&old)->held, 2);
	assert_int_equal(hand_over(PORTS), 0);
	app_close(&old);
	learn(&heir.app, 0xc00002fe);
	run_until(&heir.app, has_sent_two);
	assert_int_equal(stats_of(&heir.app)->drops[NAT_DROP_FRAGMENT_WRONG],
			 0);
	close_checked(&heir.app);
}

TEST(neighbours_and_counters_go_on)
{
	uint32_t slot;

	assert_int_equal(open_app(&old, PORTS), 0);
	learn(&old, 0xc0000207);
	receive(&old, 0, false, 1);
	old.n_reloads = 3;
	old.workers[0].stats.bursts = 17;
	assert_int_equal(hand_over(PORTS), 0);
	slot = nat_neighbours_find(heir.app.neighbours, NAT_OUTSIDE,
				   htonl(0xc0000207));
	assert_int_not_equal(slot, NAT_SLOT_NONE);
	assert_int_equal(nat_neighbours_at(heir.app.neighbours, slot).mac,
			 0x060504030202);
	assert_int_equal(heir.app.n_reloads, 3);
	assert_int_equal(heir.app.workers[0].stats.bursts, 17);
	assert_int_equal(heir.app.workers[0].stats.maps.created, 1);
	app_close(&old);
	close_checked(&heir.app);
}

static void damage_with(const char *name, uint8_t byte, size_t n)
{
	damage.name = name;
	memset(damage.bytes, byte, sizeof(damage.bytes));
	damage.n = n;
}

static void check_refused(const char *name)
{
	assert_int_equal(hand_over(PORTS), -ECANCELED);
	assert_int_equal(heir.err, -EPROTO);
	assert_reason_has(&heir.why, name);
	assert_int_equal(heir.app.workers[0].stats.maps.created, 0);
	app_close(&heir.app);
	damage.name = NULL;
}

TEST(damage_is_refused_and_the_old_process_goes_on)
{
	assert_int_equal(open_app(&old, PORTS), 0);
	receive(&old, 0, false, 1);
	damage_with("nat", 0xff, 40);
	check_refused("app/nat");
	damage_with("0/path", 0, 8);
	check_refused("0/path");
	damage_with("0/inside", 0xff, 16);
	check_refused("0/inside");
	damage_with("0/inside-pages", 0xff, 16);
	check_refused("that does not fit the others");
	damage_with("neighbours", 0xff, 24);
	check_refused("neighbours");
	assert_true(holds_one(&old));
	learn(&old, 0xc00002fe);
	receive(&old, 0, false, 2);
	assert_true(has_sent_two(&old));
	run_until(&old, has_sent_two);
	close_checked(&old);
}
