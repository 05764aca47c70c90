/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libbpf and libxdp print to stderr with a function that the process can
 * replace. Our drivers print nothing, so they replace it while they call these
 * libraries. The new function drops the messages of threads that are in such a
 * call, and passes those of other threads to the function that was set before.
 *
 * The hooks are process-wide, so this state is as well. A hook cannot be read
 * without replacing it: if a program sets its own at the moment when we remove
 * ours, the previous one may be set for an instant.
 */
#include <pthread.h>

#include <bpf/libbpf.h>
#include <xdp/libxdp.h>

#include "program/program.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint32_t n_users; /* of all threads; under the lock */
static _Thread_local uint32_t n_mine;
/* The program's own print functions; atomic. NULL: it prints nothing. */
static libbpf_print_fn_t host_bpf;
static libxdp_print_fn_t host_xdp;

static int pass_on_bpf(enum libbpf_print_level level, const char *format,
		       va_list args)
{
	const libbpf_print_fn_t host =
		__atomic_load_n(&host_bpf, __ATOMIC_ACQUIRE);

	return n_mine > 0 || host == NULL ? 0 : host(level, format, args);
}

static int pass_on_xdp(enum libxdp_print_level level, const char *format,
		       va_list args)
{
	const libxdp_print_fn_t host =
		__atomic_load_n(&host_xdp, __ATOMIC_ACQUIRE);

	return n_mine > 0 || host == NULL ? 0 : host(level, format, args);
}

/* Set our functions, and keep those of the program. */
static void set_hooks(void)
{
	const libbpf_print_fn_t bpf = libbpf_set_print(pass_on_bpf);
	const libxdp_print_fn_t xdp = libxdp_set_print(pass_on_xdp);

	if (bpf != pass_on_bpf)
		__atomic_store_n(&host_bpf, bpf, __ATOMIC_RELEASE);
	if (xdp != pass_on_xdp)
		__atomic_store_n(&host_xdp, xdp, __ATOMIC_RELEASE);
}

/* Restore the program's functions, unless it has set others meanwhile. */
static void restore_hooks(void)
{
	const libbpf_print_fn_t bpf = libbpf_set_print(host_bpf);
	const libxdp_print_fn_t xdp = libxdp_set_print(host_xdp);

	if (bpf != pass_on_bpf)
		libbpf_set_print(bpf);
	if (xdp != pass_on_xdp)
		libxdp_set_print(xdp);
}

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void after_fork_in_parent(void)
{
	pthread_mutex_unlock(&lock);
}

/* The child has only this thread. */
static void after_fork_in_child(void)
{
	n_users = n_mine;
	pthread_mutex_unlock(&lock);
}

static void watch_forks(void)
{
	(void)pthread_atfork(before_fork, after_fork_in_parent,
			     after_fork_in_child);
}

void mri_xdp_quiet_begin(void)
{
	(void)pthread_once(&once, watch_forks);
	pthread_mutex_lock(&lock);
	n_users++;
	n_mine++;
	set_hooks();
	pthread_mutex_unlock(&lock);
}

void mri_xdp_quiet_end(void)
{
	pthread_mutex_lock(&lock);
	n_mine--;
	if (--n_users == 0)
		restore_hooks();
	pthread_mutex_unlock(&lock);
}
