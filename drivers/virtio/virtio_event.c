/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What happens beside the frames: link changes, a device in trouble or about
 * to be unplugged; and the way to sleep until a frame comes.
 *
 * The port's fd is an epoll of the configuration's interrupt and of the
 * kernel's events. mr_port_poll() looks at the device in any case, so it works
 * without interrupts, too.
 *
 * A burst reads no register, so it learns of a device that is gone here.
 *
 * Source: virtio 1.2, 2.1.2 "Device Status", 5.1.4.2, 5.1.6.5.4.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "virtio.h"

/* ---- arming ---- */

/* An eventfd that was written before is not news. */
static void drain(int fd)
{
	uint64_t n;

	if (read(fd, &n, sizeof(n)) < 0)
		return; /* it was not */
}

int mri_virtio_rx_arm(struct mr_queue *queue)
{
	struct virtio_rxq *rxq = (struct virtio_rxq *)queue;

	if (queue->fd < 0)
		return 1; /* the device has no interrupt for it */
	drain(queue->fd);
	rxq->is_armed = true; /* the next burst turns interrupts off again */
	if (__atomic_load_n(&rxq->state, __ATOMIC_ACQUIRE) != VIRTIO_RUNS)
		return 0; /* nothing comes, until mr_port_poll() says so */
	return virtio_enable(&rxq->vq);
}

int mri_virtio_tx_arm(struct mr_queue *queue)
{
	struct virtio_txq *txq = (struct virtio_txq *)queue;
	uint32_t state;

	/* First: what it has to say is said by the return value, or never. */
	if (queue->fd >= 0)
		drain(queue->fd);
	state = __atomic_load_n(&txq->state, __ATOMIC_ACQUIRE);
	if (state == VIRTIO_LINKED)
		return 1;
	if (state != VIRTIO_RUNS || txq->n_frames == 0)
		return 0;
	if (queue->fd < 0)
		return 1;
	txq->is_armed = true;
	return virtio_enable(&txq->vq);
}

/* ---- events ---- */

static int watch(int epoll_fd, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	return fd < 0 ? 0 : epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

int mri_virtio_events_open(struct virtio_port *port, struct mr_reason *reason)
{
	const int config_fd = port->n_irqs > 0 ? port->irq_fds[0] : -1;

	port->base.fd = epoll_create1(EPOLL_CLOEXEC);
	if (port->base.fd < 0 || watch(port->base.fd, config_fd) < 0 ||
	    watch(port->base.fd, mr_pci_event_fd(port->pci)) < 0)
		return mr_fail(reason, -EIO, "%s: no epoll: %s",
			       port->base.info.name, strerror(errno));
	/* Best effort: with close-on-exec, as all of the library's. */
	(void)mr_fd_guard(port->base.fd);
	return 0;
}

void mri_virtio_events_close(struct virtio_port *port)
{
	mr_fd_close(port->base.fd);
	port->base.fd = -1;
}

/* The link as the device says it is now. True: it is another than before. */
static bool follow_link(struct virtio_port *port,
			const struct virtio_facts *facts)
{
	const uint32_t is_up = facts->status != UINT16_MAX &&
			       (facts->status & VIRTIO_NET_STATUS_LINK_UP) != 0;

	__atomic_store_n(&port->speed_mbps, is_up ? facts->speed_mbps : 0,
			 __ATOMIC_RELAXED);
	return __atomic_exchange_n(&port->is_up, is_up, __ATOMIC_RELAXED) !=
	       is_up;
}

/* A configuration that changed: what of it is ours to follow. */
static int follow_config(struct virtio_port *port)
{
	struct virtio_facts facts;
	int n_events = 0;

	mri_virtio_pci_read_facts(port, &facts);
	if (follow_link(port, &facts)) {
		mr_log(port->base.ctx, MR_LOG_INFO, "%s: link %s",
		       port->base.info.name, port->is_up ? "up" : "down");
		mri_virtio_queues_link(port, port->is_up);
		n_events++;
	}
	/* The frames that it asks for are the application's to send. */
	if (virtio_has(port, VIRTIO_F_GUEST_ANNOUNCE) &&
	    facts.status & VIRTIO_NET_STATUS_ANNOUNCE) {
		port->ctrl.owes_ack = true;
		mr_log(port->base.ctx, MR_LOG_INFO,
		       "%s: the device asks to be announced on its link",
		       port->base.info.name);
		n_events++;
	}
	return n_events;
}

void mri_virtio_read_link(struct virtio_port *port)
{
	struct virtio_facts facts;

	port->generation = mri_virtio_pci_generation(port);
	mri_virtio_pci_read_facts(port, &facts);
	follow_link(port, &facts);
}

static int lose(struct virtio_port *port, const char *why)
{
	mr_log(port->base.ctx, MR_LOG_ERROR, "%s: %s", port->base.info.name,
	       why);
	mri_virtio_queues_lose(port);
	return 1;
}

int mri_virtio_poll(struct mr_port *base)
{
	struct virtio_port *port = (struct virtio_port *)base;
	uint32_t status, generation, events;
	int n_events;

	if (port->n_irqs > 0)
		drain(port->irq_fds[0]);
	events = mr_pci_events(port->pci);
	if (__atomic_load_n(&port->is_gone, __ATOMIC_RELAXED))
		return 0;
	status = mri_virtio_pci_status(port);
	if (status == VIRTIO_STATUS_GONE || events & MR_PCI_EVENT_REQ)
		return lose(port, "the device is gone, or about to go");
	if (events & MR_PCI_EVENT_ERR)
		return lose(port, "the device had an error on the bus: close "
				  "the port and open it again");
	if (status & VIRTIO_STATUS_NEEDS_RESET)
		return lose(port, "the device is in error and needs a reset: "
				  "close the port and open it again");
	n_events = (int)mri_virtio_queues_mend(port);
	generation = mri_virtio_pci_generation(port);
	if (generation != port->generation) {
		port->generation = generation;
		n_events += follow_config(port);
	}
	mri_virtio_ctrl_tend(port);
	return n_events;
}
