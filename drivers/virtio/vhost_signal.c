/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Signals to the peer's eventfds that never wait.
 *
 * A write to an eventfd waits while its counter is at the maximum. O_NONBLOCK
 * is no help, since the peer has the same file and can clear it at any time.
 * The kernel itself never waits: so let it signal the end of an asynchronous
 * read, of a byte that is there.
 *
 * Source: io_submit(2), IOCB_FLAG_RESFD; linux/fs/aio.c for the ring of
 * completions, which user space may empty. io_destroy() takes tens of
 * milliseconds, so the ports of a context share one.
 */
#include <linux/aio_abi.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vhost.h"

/* What a context's number points to. */
struct completions {
	uint32_t id, n_entries;
	uint32_t head, tail;
	uint32_t magic;
};

enum {
	MAGIC = 0xa10a10a1,
	N_ENTRIES = 512, /* more than workers that signal at the same time */
};

static void open_signal(struct vhost_signal *signal)
{
	aio_context_t context = 0;

	signal->fd = mr_memfd_create("vhost-signal", 0);
	if (signal->fd >= 0 && ftruncate(signal->fd, 1) == 0 &&
	    syscall(SYS_io_setup, N_ENTRIES, &context) == 0)
		signal->completions = (struct completions *)context;
}

struct vhost_signal *mri_vhost_signal_get(struct vhost_port *port)
{
	void **slot = mr_ctx_driver_slot(port->base.ctx, port->base.driver);
	struct vhost_signal *signal = *slot;

	if (signal == NULL) {
		signal = mr_alloc(port->base.ctx, 0, sizeof(*signal));
		if (signal == NULL)
			return NULL;
		open_signal(signal);
		*slot = signal;
	}
	signal->n_ports++;
	return signal;
}

void mri_vhost_signal_put(struct vhost_port *port)
{
	void **slot = mr_ctx_driver_slot(port->base.ctx, port->base.driver);
	struct vhost_signal *signal = port->signal;

	if (signal == NULL || --signal->n_ports > 0)
		return;
	if (signal->completions != NULL)
		(void)syscall(SYS_io_destroy, signal->completions);
	mr_fd_close(signal->fd);
	mr_free(port->base.ctx, signal);
	*slot = NULL;
}

void mri_vhost_signal(const struct vhost_signal *signal, int event_fd)
{
	struct completions *done = signal->completions;
	uint8_t byte;
	struct iocb read_byte = {
		.aio_lio_opcode = IOCB_CMD_PREAD,
		.aio_fildes = (uint32_t)signal->fd,
		.aio_buf = (uintptr_t)&byte,
		.aio_nbytes = 1,
		.aio_flags = IOCB_FLAG_RESFD,
		.aio_resfd = (uint32_t)event_fd,
	};
	struct iocb *blocks[] = { &read_byte };

	if (event_fd < 0)
		return;
	/* A seccomp filter may forbid it. */
	if (done == NULL || done->magic != MAGIC) {
		mri_virtio_kick(event_fd);
		return;
	}
	(void)syscall(SYS_io_submit, done, 1, blocks);
	/* The read has ended. Another worker's head may be newer than this one,
	 * which costs a few entries until the next signal. */
	__atomic_store_n(&done->head,
			 __atomic_load_n(&done->tail, __ATOMIC_ACQUIRE),
			 __ATOMIC_RELEASE);
}
