/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fds that must not survive in a forked child.
 *
 * CLOEXEC closes an fd at exec(), MADV_DONTFORK keeps a mapping out of a child,
 * but a child that only forks keeps each fd, and with it a queue busy, or an
 * interface promiscuous, after the parent has closed it. Linux has no flag for
 * that, so the child closes them itself, in a fork handler.
 *
 * This table is outside any context: fork() concerns the process, and its
 * handlers get no argument. docs/design/0002-fork.md describes the
 * alternatives. The handler calls only close(), which is safe in the child of a
 * process with threads.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"

/* As many as fs.nr_open allows by default. Unused words take no memory. */
enum {
	MAX_FDS = 1 << 20,
	WORD_BITS = 64,
	NOEXEC_SEAL = 8, /* MFD_NOEXEC_SEAL: headers may be older */
};

static uint64_t guarded[MAX_FDS / WORD_BITS]; /* a bit per fd */
static int n_words;                           /* later words are 0 */
/* Held through fork(), so that a child sees each fd open and in the table, or
 * closed and not in it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void after_fork_in_parent(void)
{
	pthread_mutex_unlock(&lock);
}

static void after_fork_in_child(void)
{
	for (int i = 0; i < n_words; i++)
		for (; guarded[i] != 0; guarded[i] &= guarded[i] - 1)
			close(i * WORD_BITS + __builtin_ctzll(guarded[i]));
	pthread_mutex_unlock(&lock);
}

static void install(void)
{
	(void)pthread_atfork(before_fork, after_fork_in_parent,
			     after_fork_in_child);
}

int mr_fd_guard(int fd)
{
	const int word = fd / WORD_BITS;

	if (fd < 0)
		return fd;
	if (fd >= MAX_FDS) {
		close(fd);
		errno = EMFILE;
		return -EMFILE;
	}
	(void)pthread_once(&once, install);
	pthread_mutex_lock(&lock);
	guarded[word] |= UINT64_C(1) << fd % WORD_BITS;
	if (n_words <= word)
		n_words = word + 1;
	pthread_mutex_unlock(&lock);
	return fd;
}

int mr_memfd_create(const char *name, unsigned int flags)
{
	int fd;

	flags |= MFD_CLOEXEC | MFD_ALLOW_SEALING;
	fd = memfd_create(name, flags);
	/* Before Linux 6.3, the flag does not exist. */
	if (fd < 0 && errno == EACCES)
		fd = memfd_create(name, flags | NOEXEC_SEAL);
	return mr_fd_guard(fd);
}

/*
 * The last close() of a queue or a device may take long, and every fork() waits
 * for the lock. So release the file first, without the lock, by putting another
 * file in its place: the number stays in use, and a child may close it.
 */
static void release_file(int fd)
{
	const int filler = eventfd(0, EFD_CLOEXEC);

	if (filler < 0)
		return; /* close() does it, under the lock */
	(void)dup3(filler, fd, O_CLOEXEC);
	close(filler);
}

void mr_fd_close(int fd)
{
	if (fd < 0)
		return;
	if (fd < MAX_FDS)
		release_file(fd);
	pthread_mutex_lock(&lock);
	if (fd < MAX_FDS)
		guarded[fd / WORD_BITS] &=
			~(UINT64_C(1) << fd % WORD_BITS);
	close(fd);
	pthread_mutex_unlock(&lock);
}
