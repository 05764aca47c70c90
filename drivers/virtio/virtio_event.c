/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events other than frames: link changes, device errors, unplugging; and how to
 * sleep until a frame comes.
 *
 * The port's fd is an epoll of the configuration's interrupt, of the kernel's
 * events, and of a timer that ticks while waiting for the device to answer.
 * mr_port_poll() always looks at the device, so it also works without
 * interrupts. Its timeouts count these ticks, so they end whatever the
 * application's clock does, and whether it polls often or only on the fd.
 *
 * A burst reads no registers, so it learns from here that the device is gone.
 *
 * Source: virtio 1.2, 2.1.2 "Device Status", 5.1.4.2, 5.1.6.5.4.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "virtio.h"

/* ---- arming ---- */

/* Discard old events. Returns their number. */
static uint64_t drain(int fd)
{
	uint64_t n;

	return read(fd, &n, sizeof(n)) == (ssize_t)sizeof(n) ? n : 0;
}

static int arm_inside(struct virtio_vq *vq, const uint32_t *state)
{
	int has_work = 0;

	virtio_enter(vq);
	if (__atomic_load_n(state, __ATOMIC_ACQUIRE) == VIRTIO_RUNS)
		has_work = virtio_enable(vq);
	virtio_leave(vq);
	return has_work; /* else nothing comes until mr_port_poll() says so */
}

int mri_virtio_rx_arm(struct mr_queue *queue)
{
	struct virtio_rxq *rxq = (struct virtio_rxq *)queue;

	if (queue->fd < 0)
		return 1; /* the device has no interrupt for it */
	drain(queue->fd);
	rxq->is_armed = true; /* the next burst turns interrupts off again */
	return arm_inside(&rxq->vq, &rxq->state);
}

int mri_virtio_tx_arm(struct mr_queue *queue)
{
	struct virtio_txq *txq = (struct virtio_txq *)queue;
	uint32_t state;

	/* First: older events are covered by the return value. */
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
	return arm_inside(&txq->vq, &txq->state);
}

/* ---- events ---- */

int mri_virtio_watch(const struct virtio_port *port, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	if (fd < 0 || epoll_ctl(port->base.fd, EPOLL_CTL_ADD, fd, &event) == 0)
		return 0;
	return -errno;
}

int mri_virtio_events_open(struct virtio_port *port, struct mr_reason *reason)
{
	const int config_fd = port->n_irqs > 0 ? port->irq_fds[0] : -1;

	port->base.fd = mr_fd_guard(epoll_create1(EPOLL_CLOEXEC));
	port->timer_fd = mr_fd_guard(
		timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
	if (port->base.fd < 0 || port->timer_fd < 0 ||
	    mri_virtio_watch(port, port->timer_fd) < 0 ||
	    mri_virtio_watch(port, config_fd) < 0 ||
	    mri_virtio_watch(port, port->transport->event_fd(port)) < 0)
		return mr_fail(reason, -EIO, "%s: no epoll or timer: %s",
			       port->base.info->name, mr_strerror(errno));
	return 0;
}

void mri_virtio_events_close(struct virtio_port *port)
{
	mr_fd_close(port->base.fd);
	mr_fd_close(port->timer_fd);
	port->base.fd = port->timer_fd = -1;
}

static bool is_gone(const struct virtio_port *port)
{
	return __atomic_load_n(&port->is_gone, __ATOMIC_RELAXED);
}

void mri_virtio_tick(struct virtio_port *port)
{
	const bool is_on = !is_gone(port) &&
			   (port->n_resets > 0 ||
			    mri_virtio_ctrl_waits(&port->ctrl));
	const struct timespec period = { .tv_nsec =
						 is_on ? VIRTIO_TICK_NS : 0 };
	const struct itimerspec times = { period, period };

	if (is_on != port->is_ticking &&
	    timerfd_settime(port->timer_fd, 0, &times, NULL) == 0)
		port->is_ticking = is_on;
}

/* Update the link state from the device. True: it changed. */
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

/*
 * Whether the configuration may have changed. The generation alone does not
 * tell: a device may keep it until the change was read (4.1.4.3.1). So its
 * interrupt counts, too; and the link is checked if there may be no interrupts,
 * and while it is down, since nothing is sent then.
 */
static bool has_news(const struct virtio_port *port, bool is_told)
{
	if (is_told || port->transport->generation(port) != port->generation)
		return true;
	return (!port->is_up || port->n_irqs == 0) &&
	       port->transport->has_link(port) != (port->is_up != 0);
}

/* Follow a configuration that may have changed. */
static int follow_config(struct virtio_port *port)
{
	const uint32_t generation = port->generation;
	struct virtio_facts facts;
	int n_events = 0;

	port->generation = port->transport->read_facts(port, &facts);
	if (follow_link(port, &facts)) {
		mr_log(port->base.ctx, MR_LOG_INFO, "%s: link %s",
		       port->base.info->name, port->is_up ? "up" : "down");
		mri_virtio_queues_link(port, port->is_up);
		n_events++;
	}
	/*
	 * The application must send the requested frames. The device repeats
	 * the request until acknowledged, which is not a new event.
	 */
	if (virtio_has(port, VIRTIO_F_GUEST_ANNOUNCE) &&
	    facts.status & VIRTIO_NET_STATUS_ANNOUNCE &&
	    (port->generation != generation ||
	     !mri_virtio_ctrl_waits(&port->ctrl))) {
		port->ctrl.owes_ack = true;
		mr_log(port->base.ctx, MR_LOG_INFO,
		       "%s: the device requests announcements on its link",
		       port->base.info->name);
		n_events++;
	}
	return n_events;
}

void mri_virtio_read_link(struct virtio_port *port)
{
	struct virtio_facts facts;

	port->generation = port->transport->read_facts(port, &facts);
	follow_link(port, &facts);
	mri_virtio_queues_link(port, port->is_up);
}

static int lose(struct virtio_port *port, const char *why)
{
	mr_log(port->base.ctx, MR_LOG_ERROR, "%s: %s", port->base.info->name,
	       why);
	mri_virtio_queues_lose(port);
	return 1;
}

/* Service a port that is not gone. Returns the number of events. */
static int service(struct virtio_port *port, uint32_t events, bool is_told)
{
	const int err = port->transport->check(port);
	int n_events = 0;

	if (err == -ENODEV || events & MR_PCI_EVENT_REQ)
		return lose(port, "the device is gone, or about to go");
	if (events & MR_PCI_EVENT_ERR)
		return lose(port, "the device had an error on the bus: close "
				  "the port and open it again");
	if (err < 0)
		return lose(port, "the device is in error and needs a reset: "
				  "close the port and open it again");
	if (has_news(port, is_told))
		n_events += follow_config(port);
	n_events += (int)mri_virtio_queues_mend(port);
	if (!is_gone(port))
		mri_virtio_ctrl_service(port);
	return n_events;
}

uint32_t mri_virtio_poll(struct mr_port *base)
{
	struct virtio_port *port = (struct virtio_port *)base;
	bool is_told = false;
	uint32_t events;
	int n_events;

	if (port->n_irqs > 0)
		is_told = drain(port->irq_fds[0]) > 0;
	events = port->transport->events(port);
	if (is_gone(port))
		return 0;
	if (port->is_ticking)
		port->n_ticks += drain(port->timer_fd);
	n_events = service(port, events, is_told);
	mri_virtio_tick(port);
	return n_events;
}
