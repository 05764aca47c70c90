/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of drivers/xdp/program/quiet.c: the host keeps its messages. */
#include <pthread.h>
#include <stdarg.h>

#include <bpf/libbpf.h>
#include <xdp/libxdp.h>

#include "program/program.h"
#include "support/test.h"

static uint32_t n_bpf, n_xdp, n_other; /* messages that the host got */

static int host_bpf(enum libbpf_print_level level, const char *format,
		    va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	__atomic_fetch_add(&n_bpf, 1, __ATOMIC_RELAXED);
	return 0;
}

static int host_xdp(enum libxdp_print_level level, const char *format,
		    va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	__atomic_fetch_add(&n_xdp, 1, __ATOMIC_RELAXED);
	return 0;
}

static int other_bpf(enum libbpf_print_level level, const char *format,
		     va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	n_other++;
	return 0;
}

/* What libbpf does with a message. The hook is put back at once. */
static void print_as_libbpf(const char *format, ...)
{
	const libbpf_print_fn_t bpf = libbpf_set_print(NULL);
	const libxdp_print_fn_t xdp = libxdp_set_print(NULL);
	va_list args;

	libbpf_set_print(bpf);
	libxdp_set_print(xdp);
	va_start(args, format);
	bpf(LIBBPF_WARN, format, args);
	xdp(LIBXDP_WARN, format, args);
	va_end(args);
}

static void *say_in_thread(void *opaque)
{
	(void)opaque;
	print_as_libbpf("x");
	return NULL;
}

static int set_up(void **state)
{
	(void)state;
	n_bpf = n_xdp = n_other = 0;
	libbpf_set_print(host_bpf);
	libxdp_set_print(host_xdp);
	return 0;
}

/* Whatever a test did, the host has its hooks again. */
static int tear_down(void **state)
{
	(void)state;
	assert_ptr_equal(libxdp_set_print(NULL), host_xdp);
	return 0;
}

#define QUIET_TEST(name) TEST_WITH(set_up, tear_down, name)

static void assert_hosts(void)
{
	assert_ptr_equal(libbpf_set_print(host_bpf), host_bpf);
}

QUIET_TEST(messages_of_this_thread_are_dropped_until_the_last_end)
{
	mri_xdp_quiet_begin();
	mri_xdp_quiet_begin();
	print_as_libbpf("x");
	mri_xdp_quiet_end();
	print_as_libbpf("x");
	assert_int_equal(n_bpf + n_xdp, 0);
	mri_xdp_quiet_end();
	print_as_libbpf("x");
	assert_int_equal(n_bpf, 1);
	assert_int_equal(n_xdp, 1);
	assert_hosts();
}

QUIET_TEST(messages_of_other_threads_reach_the_host)
{
	pthread_t thread;

	mri_xdp_quiet_begin();
	assert_int_equal(pthread_create(&thread, NULL, say_in_thread, NULL), 0);
	pthread_join(thread, NULL);
	assert_int_equal(n_bpf, 1);
	assert_int_equal(n_xdp, 1);
	mri_xdp_quiet_end();
	assert_hosts();
}

/* One begins while the other is under way, and ends after it. */
static pthread_barrier_t step;

static void *overlap(void *opaque)
{
	(void)opaque;
	pthread_barrier_wait(&step); /* the other has begun */
	mri_xdp_quiet_begin();
	pthread_barrier_wait(&step);
	pthread_barrier_wait(&step); /* the other has ended */
	print_as_libbpf("x");
	mri_xdp_quiet_end();
	return NULL;
}

QUIET_TEST(hooks_are_restored_by_the_last_of_two_threads)
{
	pthread_t thread;

	pthread_barrier_init(&step, NULL, 2);
	assert_int_equal(pthread_create(&thread, NULL, overlap, NULL), 0);
	mri_xdp_quiet_begin();
	pthread_barrier_wait(&step);
	pthread_barrier_wait(&step);
	mri_xdp_quiet_end();
	print_as_libbpf("x");
	assert_int_equal(n_bpf, 1);
	pthread_barrier_wait(&step);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&step);
	assert_int_equal(n_bpf, 1);
	assert_hosts();
}

QUIET_TEST(hook_that_the_host_sets_meanwhile_stays)
{
	mri_xdp_quiet_begin();
	libbpf_set_print(other_bpf);
	mri_xdp_quiet_begin(); /* and is quiet again from here on */
	print_as_libbpf("x");
	assert_int_equal(n_other, 0);
	mri_xdp_quiet_end();
	mri_xdp_quiet_end();
	assert_ptr_equal(libbpf_set_print(other_bpf), other_bpf);
	mri_xdp_quiet_begin();
	libbpf_set_print(host_bpf);
	mri_xdp_quiet_end();
	assert_hosts();
}

QUIET_TEST(hook_that_is_null_is_restored)
{
	libbpf_set_print(NULL);
	mri_xdp_quiet_begin();
	mri_xdp_quiet_end();
	assert_null(libbpf_set_print(NULL));
}
