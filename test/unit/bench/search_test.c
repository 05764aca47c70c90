/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of apps/bench/search: search.c, binary.c, steps.c and back2back.c, on
 * devices of which the result is known.
 */
#include "search_model.h"

static struct found binary(struct model *m, uint32_t n_verify)
{
	struct search s = model_search(m);
	struct mr_reason why = { .text = "" };
	struct found found;

	if (search_binary(&s, n_verify, 0, &found, &why) != 0)
		fail_msg("%s", why.text);
	assert_true(found.is_complete);
	assert_int_equal(s.n_trials, m->n_calls);
	return found;
}

TEST(a_hard_limit_is_found_to_the_resolution)
{
	static const double rates[] = { 999000, 777777, 500000, 12345, 2500 };

	for (uint32_t i = 0; i < 5; i++) {
		for (uint32_t n_verify = 0; n_verify < 3; n_verify++) {
			struct model m = { .rate_pps = rates[i] };
			const struct found f = binary(&m, n_verify);

			assert_within(f.value, rates[i] * 0.995, rates[i]);
			assert_within(rates[i], f.low, f.high);
			assert_int_equal(f.limit, LIMIT_DEVICE);
			assert_true(f.loss <= 0);
		}
	}
}

/* 0.1 % of all frames above 300000, all above 800000. */
TEST(the_tolerated_loss_moves_the_result)
{
	static const struct {
		double tolerance, pps;
	} cases[] = { { 0, 300000 }, { 0.0009, 300000 }, { 0.0011, 800880 } };

	for (uint32_t i = 0; i < 3; i++) {
		struct model m = { .rate_pps = 800000,
				   .soft_loss = 0.001,
				   .soft_from = 300000 };
		struct search s = model_search(&m);
		struct mr_reason why;
		struct found f;

		s.loss_tolerance = cases[i].tolerance;
		assert_int_equal(search_binary(&s, 0, 0, &f, &why), 0);
		assert_within(f.value, cases[i].pps * 0.995, cases[i].pps);
	}
}

/* A few frames are lost in each 3rd trial, whatever the rate. */
TEST(verification_outlives_rare_bursts)
{
	struct model m = { .rate_pps = 600000, .burst_every = 3 };
	const struct found f = binary(&m, 2);

	assert_within(f.value, 600000 * 0.995, 600000);
	m = (struct model){ .rate_pps = 600000, .burst_every = 3 };
	assert_true(binary(&m, 0).value < 600000 * 0.99);
}

/* Each trial takes 2 % off: what held at the first does not at the last. */
TEST(what_does_not_hold_again_is_no_result)
{
	struct model m = { .rate_pps = 600000, .drift = 0.02 };
	struct search s = model_search(&m);
	struct mr_reason why;
	struct found f;

	assert_int_equal(search_binary(&s, 0, 0, &f, &why), -EAGAIN);
	assert_non_null(strstr(why.text, "does not converge"));
	assert_non_null(strstr(why.text, "--method mlr"));
	assert_false(f.is_complete);
	assert_true(f.value <= 0);
}

/* It settles some steps lower where the drift is less than that. */
TEST(a_slow_drift_is_followed_down)
{
	struct model m = { .rate_pps = 600000, .drift = 0.0008 };
	const struct found f = binary(&m, 0);

	assert_within(f.value, m.rate_pps * 0.99, m.rate_pps * 1.001);
}

TEST(a_sender_that_fails_is_not_the_device)
{
	struct model m = { .rate_pps = 900000, .sender_pps = 400000 };
	struct found f = binary(&m, 0);

	assert_int_equal(f.limit, LIMIT_SENDER);
	/* Half a per cent unsent is let pass; the value is what was sent. */
	assert_within(f.value, 398000, 400000);
	/* Each such rate was tried three times, before it was given up. */
	m = (struct model){ .rate_pps = 300000, .is_unsent_once = 2 };
	f = binary(&m, 0);
	assert_int_equal(f.limit, LIMIT_DEVICE);
	assert_within(f.value, 300000 * 0.995, 300000);
}

/* All frames were sent, but it took 1 or 0.2 % longer than asked. */
TEST(a_load_is_what_left_in_time)
{
	struct model m = { .late_share = 0.01 };
	struct search s = model_search(&m);
	struct mr_reason why;
	struct outcome o;

	assert_int_equal(
		search_trial(&s, 200000, s.trial.duration_ns, 0, &o, &why), 0);
	assert_true(o.is_unsent);
	assert_within(o.load_pps, 198000, 198100);
	m.late_share = 0.002;
	assert_int_equal(
		search_trial(&s, 200000, s.trial.duration_ns, 0, &o, &why), 0);
	assert_false(o.is_unsent);
	assert_within(o.load_pps, 199590, 199620);
}

/* Where it can do far more, something else is at fault. */
TEST(a_disturbed_sender_is_told_from_a_slow_one)
{
	struct model m = { .rate_pps = 300000, .is_unsent_once = 9 };
	struct search s = model_search(&m);
	struct mr_reason why;
	struct outcome o;
	struct found f;

	s.sender_pps = MODEL_MAX_PPS;
	assert_int_equal(
		search_trial(&s, 200000, s.trial.duration_ns, 0, &o, &why), 0);
	assert_int_equal(m.n_calls, 10);
	assert_false(o.is_unsent);
	m.is_unsent_once = 10;
	assert_int_equal(
		search_trial(&s, 200000, s.trial.duration_ns, 0, &o, &why),
		-EAGAIN);
	assert_non_null(strstr(why.text, "the sender is disturbed: 10.0 %"));
	/* Nothing is known of it: no rate is left, and that is no result. */
	m = (struct model){ .is_unsent_once = UINT32_MAX };
	s = model_search(&m);
	assert_int_equal(search_binary(&s, 0, 0, &f, &why), -EAGAIN);
	assert_non_null(strstr(why.text, "kept no rate up"));
}

TEST(losses_of_the_receiver_are_told_from_the_devices)
{
	struct model m = { .rate_pps = 500000, .is_receiver = true };

	assert_int_equal(binary(&m, 0).limit, LIMIT_RECEIVER);
	/* Most of what its ring had no room for was not ours. */
	m = (struct model){ .rate_pps = 500000,
			    .is_receiver = true,
			    .foreign_share = 0.6 };
	assert_int_equal(binary(&m, 0).limit, LIMIT_DEVICE);
	/* What is flooded back to the port that sends is not missing. */
	m = (struct model){ .rate_pps = 500000,
			    .is_receiver = true,
			    .is_sending_port = true };
	assert_int_equal(binary(&m, 0).limit, LIMIT_DEVICE);
}

/* Also where --rate said what the highest rate is. */
TEST(a_rate_that_was_kept_tells_what_the_sender_can_do)
{
	struct model m = { .rate_pps = 300000 };
	struct search s = model_search(&m);
	struct mr_reason why;
	struct outcome o;
	struct found f;

	assert_int_equal(
		search_trial(&s, 500000, s.trial.duration_ns, 0, &o, &why), 0);
	m.is_unsent_once = 9;
	assert_int_equal(
		search_trial(&s, 200000, s.trial.duration_ns, 0, &o, &why), 0);
	assert_false(o.is_unsent);
	/* Not the device's fault, if it is the sender that does not do again
	 * what it did. */
	m = (struct model){ .rate_pps = 600000 };
	assert_within(binary(&m, 0).value, 597000, 600000);
	m = (struct model){ .rate_pps = 600000, .unsent_from = m.n_calls };
	s = model_search(&m);
	assert_int_equal(search_binary(&s, 0, 0, &f, &why), -EAGAIN);
	assert_non_null(strstr(why.text, "the sender kept no rate up"));
	assert_int_equal(f.limit, LIMIT_SENDER);
}

TEST(the_highest_rate_is_tried_first)
{
	struct model m = { 0 };
	const struct found f = binary(&m, 0);

	assert_int_equal(f.limit, LIMIT_HIGHEST);
	assert_within(f.value, MODEL_MAX_PPS, MODEL_MAX_PPS);
	assert_true(f.high <= 0);
	assert_int_equal(m.n_calls, 2); /* and once more */
}

TEST(a_device_that_always_loses_has_no_rate)
{
	struct model m = { .soft_loss = 0.01 };
	struct found f = binary(&m, 0);

	assert_true(f.value <= 0);
	assert_true(f.high > 0);
	assert_non_null(strstr(f.note, "more than the tolerated loss"));
}

TEST(a_signal_leaves_what_there_is)
{
	struct model m = { .rate_pps = 600000, .cut_at = 4 };
	struct search s = model_search(&m);
	struct mr_reason why;
	struct found f;

	assert_int_equal(search_binary(&s, 0, 0, &f, &why), -EINTR);
	assert_false(f.is_complete);
	assert_within(600000, f.low, f.high);
	assert_within(f.low, 500000, 500000);
}

TEST(a_trial_that_broke_off_says_why)
{
	struct model m = { .stop = "veth0: link down" };
	struct search s = model_search(&m);
	struct mr_reason why;
	struct found f;

	assert_int_equal(search_binary(&s, 0, 0, &f, &why), -EIO);
	assert_non_null(strstr(why.text, "veth0: link down"));
}

TEST(trials_have_an_end)
{
	struct model m = { .rate_pps = 600000 };
	struct search s = model_search(&m);
	struct mr_reason why;
	struct found f;

	s.max_trials = 5;
	assert_int_equal(search_binary(&s, 0, 0, &f, &why), -EAGAIN);
	assert_int_equal(m.n_calls, 5);
	assert_non_null(strstr(why.text, "after 5 trials"));
}

static bool explain(void *opaque, const struct trial_result *result, char *ret,
		    size_t n_bytes)
{
	assert_int_equal(result->unique, 0);
	assert_int_equal(((struct model *)opaque)->n_calls, 3);
	snprintf(ret, n_bytes, "last seen at p0");
	return true;
}

TEST(a_dead_device_is_noticed_first)
{
	struct model m = { .is_dead = true };
	struct search s = model_search(&m);
	struct mr_reason why = { .text = "" };

	assert_int_equal(search_check_path(&s, &why), -ENOLINK);
	assert_non_null(strstr(why.text, "none of 100 frames came back"));
	assert_non_null(strstr(why.text, "--dst-mac"));
	m.n_calls = 0;
	s.explain = explain;
	assert_int_equal(search_check_path(&s, &why), -ENOLINK);
	assert_non_null(strstr(why.text, "last seen at p0"));
	m.is_dead = false;
	assert_int_equal(search_check_path(&s, &why), 0);
}

static uint32_t number(void *observer, const struct search *s,
		       const struct trial_result *result)
{
	assert_true(result->sent > 0);
	assert_true(s->left_ns > 0);
	return 100 + (*(uint32_t *)observer)++;
}

TEST(each_trial_is_seen_by_the_observer)
{
	struct model m = { .rate_pps = 600000 };
	struct search s = model_search(&m);
	struct mr_reason why;
	struct found f;
	uint32_t n = 0;

	s.on_trial = number;
	s.observer = &n;
	assert_int_equal(search_binary(&s, 0, 0, &f, &why), 0);
	assert_int_equal(n, m.n_calls);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(s.trials[i], 100 + i);
	assert_int_equal(s.left_ns, 0);
}

TEST(the_loss_curve_ends_behind_two_clean_steps)
{
	struct model m = { .rate_pps = 650000 };
	struct search s = model_search(&m);
	struct mr_reason why;
	struct loss_curve curve;

	assert_int_equal(search_frame_loss(&s, 0.1, &curve, &why), 0);
	assert_true(curve.is_complete);
	assert_int_equal(curve.n, 6); /* 100 to 50 % */
	assert_within(curve.points[0].loss, 0.349, 0.351);
	assert_within(curve.points[3].loss, 0.071, 0.072);
	assert_true(curve.points[4].n_lost == 0 && curve.points[5].n_lost == 0);
	/* Two in turn, not two in all; and down to the last step. */
	m = (struct model){ .rate_pps = 950000, .burst_every = 2 };
	assert_int_equal(search_frame_loss(&s, 0.1, &curve, &why), 0);
	assert_int_equal(curve.n, 10);
}

/* Bursts into the model's buffer; those that find no end are for the caller. */
static struct burst_found
bursts(struct model *m, const struct back2back *config, double resolution)
{
	struct search s = model_search(m);
	struct mr_reason why = { .text = "" };
	struct burst_found b;

	s.resolution = resolution;
	if (search_back2back(&s, config, &b, &why) != 0)
		fail_msg("%s", why.text);
	assert_true(b.is_complete);
	assert_int_equal(b.n, config->n_tests);
	assert_int_equal(s.n_trials, m->n_calls);
	return b;
}

/* The reason for which there is no result. */
static struct mr_reason no_bursts(struct model *m,
				  const struct back2back *config,
				  uint32_t max_trials, int err)
{
	struct search s = model_search(m);
	struct mr_reason why = { .text = "" };
	struct burst_found b;

	s.max_trials = max_trials;
	assert_int_equal(search_back2back(&s, config, &b, &why), err);
	return why;
}

/* A burst of B / (1 - R / L) frames fills a buffer of B. */
TEST(bursts_tell_the_buffer)
{
	const struct back2back config = { .n_tests = 5,
					  .max_burst_ns = 2000000000,
					  .throughput_pps = 750000 };
	struct model m = { .rate_pps = 750000, .buffer = 1024 };
	struct burst_found b = bursts(&m, &config, 0.001);

	assert_int_equal(b.limit, LIMIT_DEVICE);
	assert_within(b.mean, 4096 * 0.999, 4097);
	assert_true(m.n_seconds < 1);
	assert_within(b.sd, 0, 0);
	assert_within(b.min, b.max, b.max);
	assert_within(b.implied_s, 0.00409, 0.0041);
	assert_within(b.corrected_s, 0.001022, 0.001025);
	/* Nothing is lost at all: the longest burst, and it says so. */
	m = (struct model){ 0 };
	b = bursts(&m, &config, 0.001);
	assert_int_equal(b.limit, LIMIT_HIGHEST);
	assert_within(b.mean, 2000000, 2000000);
}

/* Trials are limited for each of them. */
TEST(many_tests_have_room)
{
	const struct back2back config = { .n_tests = 1000,
					  .max_burst_ns = 2000000000,
					  .n_verify = 2 };
	struct model m = { .rate_pps = 750000, .buffer = 1024 };
	struct mr_reason why;

	bursts(&m, &config, 0.0001);
	assert_true(m.n_calls > 10 * MAX_TRIALS);
	/* One that finds no end is still told. */
	why = no_bursts(&m, &config, 3, -EAGAIN);
	assert_non_null(strstr(why.text, "after 3 trials"));
}

TEST(bursts_that_the_tester_ends_are_not_the_devices)
{
	struct back2back config = { .n_tests = 2, .max_burst_ns = 1000000000 };
	struct model m = { .rate_pps = 500000,
			   .buffer = 512,
			   .is_receiver = true };
	struct mr_reason why;
	struct burst_found b;

	assert_int_equal(bursts(&m, &config, 0.005).limit, LIMIT_RECEIVER);
	/* It takes twice as long for them: no burst at that rate ever left. */
	m = (struct model){ .late_share = 1 };
	b = bursts(&m, &config, 0.005);
	assert_int_equal(b.limit, LIMIT_SENDER);
	assert_true(b.mean < 100);
	m = (struct model){ .late_share = 100 };
	why = no_bursts(&m, &config, MAX_TRIALS, -EAGAIN);
	assert_non_null(strstr(why.text, "sends no burst"));
	config.max_burst_ns = 999;
	why = no_bursts(&m, &config, MAX_TRIALS, -EINVAL);
	assert_non_null(strstr(why.text, "--max-burst"));
}

/* Steps down never reach 0, which would be full speed. */
TEST(confirming_stays_above_the_lowest_rate)
{
	struct model m = { .rate_pps = 600000, .drift = 0.9 };
	struct search s = model_search(&m);
	struct mr_reason why;
	struct found f;

	s.resolution = 0.5;
	s.max_pps = 500000;
	assert_int_equal(search_binary(&s, 0, 0, &f, &why), -EAGAIN);
	assert_true(m.n_calls > 5);
	assert_true(f.high >= s.min_pps);
}

TEST(bursts_of_a_flaky_device_spread)
{
	struct back2back config = { .n_tests = 20, .max_burst_ns = 1000000000 };
	const struct model flaky = { .rate_pps = 500000,
				     .buffer = 512,
				     .burst_every = 17 };
	struct model m = flaky;
	struct burst_found b = bursts(&m, &config, 0.005);

	assert_true(b.sd > 1 && b.min < b.mean && b.max > b.mean);
	config.n_verify = 1;
	m = flaky;
	b = bursts(&m, &config, 0.005);
	assert_within(b.mean, 1024 * 0.995, 1026);
}
