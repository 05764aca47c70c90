/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Capabilities and system calls.
 *
 * Source: capabilities(7), prctl(2), seccomp(2), seccomp_rule_add(3).
 */
#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef HAVE_SECCOMP
#include <seccomp.h>
#endif

#include "xdp/lease/broker.h"

#include "sandbox.h"

static const struct {
	uint32_t bit;
	const char *name;
} kept[] = {
	{ 12, "CAP_NET_ADMIN" }, /* programs on interfaces, settings */
	{ 13, "CAP_NET_RAW" },   /* AF_XDP sockets */
	{ 14, "CAP_IPC_LOCK" },  /* memory beyond RLIMIT_MEMLOCK */
	{ 39, "CAP_BPF" },       /* programs, maps */
};

static int keep_capabilities(struct mr_reason *ret_why)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct now[_LINUX_CAPABILITY_U32S_3] = { 0 };
	uint32_t words[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (syscall(SYS_capget, &header, now) < 0)
		return -errno;
	for (uint32_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		const uint32_t bit = kept[i].bit;

		if (!(now[bit / 32].permitted >> bit % 32 & 1))
			return mr_fail(ret_why, -EPERM,
				       "%s is missing: run as root, or start "
				       "the unit mr-brokerd.service",
				       kept[i].name);
		words[bit / 32] |= UINT32_C(1) << bit % 32;
	}
	/* Needs CAP_SETPCAP; without it, nothing can be regained. */
	for (uint32_t bit = 0; bit < 64; bit++)
		if (!(words[bit / 32] >> bit % 32 & 1))
			(void)prctl(PR_CAPBSET_DROP, bit, 0, 0, 0);
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	for (uint32_t i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		now[i] = (struct __user_cap_data_struct){ .effective = words[i],
							  .permitted =
								  words[i] };
	if (syscall(SYS_capset, &header, now) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return 0;
}

#ifdef HAVE_SECCOMP
/* By name: machines lack some of them. */
/* clang-format off */
static const char *const calls[] = {
	"accept4", "access", "bind", "bpf", "brk", "capget", "clock_gettime",
	"clock_nanosleep", "clone", "clone3", "close", "connect", "dup",
	"dup3", "eventfd2", "exit", "exit_group", "faccessat", "faccessat2",
	"fcntl", "flock", "fstat", "fstatfs", "ftruncate", "futex",
	"getdents64", "geteuid", "getpid", "getppid", "getrandom",
	"getrlimit", "getsockname", "getsockopt", "gettid", "getuid", "ioctl",
	"kill", "lseek", "madvise", "memfd_create", "mkdir", "mkdirat",
	"mmap", "mprotect", "mremap", "munmap", "nanosleep", "newfstatat",
	"open", "openat", "pipe2", "poll", "ppoll", "prctl", "pread64",
	"prlimit64", "pwrite64", "read", "readlink", "readlinkat", "recvfrom",
	"recvmsg", "restart_syscall", "rseq", "rt_sigaction",
	"rt_sigprocmask", "rt_sigreturn", "sched_yield", "sendmsg", "sendto",
	"set_robust_list", "setsockopt", "shutdown", "socket", "stat",
	"statfs", "statx", "tgkill", "uname", "unlink", "unlinkat", "wait4",
	"write", "writev"
};
/* clang-format on */

static int filter_calls(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int err = filter == NULL ? -ENOMEM : 0;

	for (uint32_t i = 0; i < sizeof(calls) / sizeof(calls[0]) && err == 0;
	     i++) {
		const int number = seccomp_syscall_resolve_name(calls[i]);

		if (number != __NR_SCMP_ERROR && number >= 0)
			err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, number,
					       0);
	}
	if (err == 0)
		err = seccomp_load(filter);
	if (filter != NULL)
		seccomp_release(filter);
	return err;
}
#else
static int filter_calls(void)
{
	return 0;
}
#endif

int sandbox_enter(struct mr_reason *ret_why)
{
	int err;

	ret_why->text[0] = '\0';
	err = keep_capabilities(ret_why);
	if (err == 0)
		err = filter_calls();
	if (err < 0 && ret_why->text[0] == '\0')
		mr_fail(ret_why, err, "cannot drop privileges: %s",
			mr_strerror(-err));
	return err;
}
