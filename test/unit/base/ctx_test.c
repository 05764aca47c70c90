/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/base/ctx.c: one function per promise in <millrace/ctx.h>. */
#include "support/unit.h"

#include "base/base.h"

TEST(no_config_means_defaults)
{
	struct mr_ctx *ctx = NULL;
	uint64_t t0, t1;
	void *memory;

	assert_int_equal(mr_ctx_create(NULL, &ctx, NULL), 0);
	t0 = mr_ctx_now_ns(ctx);
	t1 = mr_ctx_now_ns(ctx);
	assert_true(t0 > 0 && t1 >= t0);
	mr_log(ctx, MR_LOG_ERROR, "nobody hears %s", "this");
	memory = mr_alloc(ctx, 4096, 100);
	assert_int_equal((uintptr_t)memory % 4096, 0);
	mr_free(ctx, memory);
	mr_ctx_destroy(ctx);
}

TEST(wrong_config_is_refused_with_a_reason)
{
	static const struct {
		struct mr_ctx_config config;
		const char *words;
	} cases[] = {
		{ { .size = 0 }, "size is 0" },
		{ { .size = 3 }, "size is 3" },
		{ { .size = sizeof(struct mr_ctx_config) + 1 }, "at most" },
		{ { .size = sizeof(struct mr_ctx_config), .alloc = hook_alloc },
		  "alloc and free" },
		{ { .size = sizeof(struct mr_ctx_config), .free = hook_free },
		  "alloc and free" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mr_ctx *ctx = (struct mr_ctx *)1;
		struct mr_reason why = { "" };

		assert_int_equal(mr_ctx_create(&cases[i].config, &ctx, &why),
				 -EINVAL);
		assert_reason_has(&why, cases[i].words);
		assert_ptr_equal(ctx, (struct mr_ctx *)1); /* left alone */
		assert_int_equal(mr_ctx_create(&cases[i].config, &ctx, NULL),
				 -EINVAL);
	}
}

/* A program that was built when the struct ended behind opaque. */
TEST(shorter_config_is_completed_with_defaults)
{
	struct {
		uint32_t size, reserved;
		void *opaque;
		uint64_t garbage[4]; /* not read: behind size */
	} old = { 16, 0, &old, { 1, 2, 3, 4 } };
	struct mr_ctx *ctx = NULL;

	assert_int_equal(
		mr_ctx_create((struct mr_ctx_config *)&old, &ctx, NULL), 0);
	assert_true(mr_ctx_now_ns(ctx) > 4);
	mr_ctx_destroy(ctx);
}

static uint64_t fixed_clock(void *opaque)
{
	return *(uint64_t *)opaque;
}

TEST(times_come_from_the_clock_hook)
{
	uint64_t now = 42;
	const struct mr_ctx_config config = { .size = sizeof(config),
					      .opaque = &now,
					      .clock = fixed_clock };
	struct mr_ctx *ctx = NULL;

	assert_int_equal(mr_ctx_create(&config, &ctx, NULL), 0);
	assert_int_equal(mr_ctx_now_ns(ctx), 42);
	now = 43;
	assert_int_equal(mr_ctx_now_ns(ctx), 43);
	mr_ctx_destroy(ctx);
}

TEST(all_memory_is_allocated_and_freed_by_hooks)
{
	struct test_allocator a = { 0 };
	struct mr_ctx *ctx = test_ctx(&a);
	uint8_t *memory = mr_alloc(ctx, 0, 1000);

	assert_int_equal(a.n_out, 2);
	assert_int_equal((uintptr_t)memory % 64, 0);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(memory[i], 0);
	mr_free(ctx, memory);
	mr_free(ctx, NULL);
	assert_int_equal(a.n_out, 1);
	a.fail_at = a.n_calls + 1;
	assert_null(mr_alloc(ctx, 0, 1));
	mr_ctx_destroy(ctx);
	assert_int_equal(a.n_out, 0);
	mr_ctx_destroy(NULL);
}

TEST(no_memory_is_enomem)
{
	struct test_allocator a = { .fail_at = 1 };
	const struct mr_ctx_config config = { .size = sizeof(config),
					      .opaque = &a,
					      .alloc = hook_alloc,
					      .free = hook_free };
	struct mr_ctx *ctx = NULL;
	struct mr_reason why = { "" };

	assert_int_equal(mr_ctx_create(&config, &ctx, &why), -ENOMEM);
	assert_reason_has(&why, "memory");
	assert_null(ctx);
	assert_int_equal(a.n_out, 0);
}

TEST(log_hook_gets_one_line)
{
	struct test_allocator a = { 0 };
	struct mr_ctx *ctx = test_ctx(&a);
	char longer[1000];

	mr_log(ctx, MR_LOG_INFO, "%d frames", 3);
	assert_string_equal(a.last_line, "3 frames");
	assert_int_equal(a.n_lines, 1);
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	mr_log(ctx, MR_LOG_INFO, "%s", longer);
	assert_int_equal(strlen(a.last_line), 511); /* cut off, terminated */
	mr_ctx_destroy(ctx);
}

/* Counters wrap, and the one that is read later may be ahead. */
TEST(a_distance_may_span_the_wrap)
{
	assert_int_equal(mri_distance(10, 17), 7);
	assert_int_equal(mri_distance(17, 10), 0);
	assert_int_equal(mri_distance(UINT64_MAX - 2, 4), 7);
	assert_int_equal(mri_distance(4, UINT64_MAX - 2), 0);
}
