/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Interrupts, and what mr_port_poll() does with them.
 *
 *     rx queue i --> vector i            off until mr_queue_arm()
 *     tx queue i --> vector n + i        off until mr_queue_arm()
 *     link       --> the next vector     always on
 *
 * Firing disables a vector (EIAC, EIAM), so an unarmed queue costs no
 * interrupts. Causes that occur while it is disabled are remembered (EICR, ICR)
 * and fire when it is enabled. So arming clears them, looks at the ring,
 * enables the vector, and looks again: the looks find what is older, and what
 * is newer fires. If there are too few vectors (I210 with 3 queues), tx queues
 * have none; if there are none for rx queues either, the port is polled.
 *
 * Source: the datasheets' chapter 7, "Interrupts", and chapter 8 (82574: 10),
 * IVAR.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "intel.h"

enum {
	/* How often the device's counters are read, and link and presence, if
	 * no interrupt reports them. */
	TICK_S = 1,
	/* The 82574 raises OTHER for each overrun, too; limit its rate. */
	LINK_ITR_US = 8000,
	EITR_82574_MAX = 0xffff,
	EITR_82574_PER_US = 4, /* 256 ns each */
};

enum source { SOURCE_LINK, SOURCE_EVENTS, SOURCE_TIMER, N_SOURCES };

/* Read an eventfd or timerfd until empty; both are non-blocking. */
static void drain(int fd)
{
	uint64_t n;

	if (read(fd, &n, sizeof(n)) < 0)
		return; /* empty */
}

static int watch(const struct intel_port *port, int fd, enum source source)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = source };

	if (fd < 0)
		return 0;
	return epoll_ctl(port->base.fd, EPOLL_CTL_ADD, fd, &event) < 0 ?
		       -errno :
		       0;
}

/* Get as many vectors as useful, with their fds, or none. 0 or -errno. */
static int get_vectors(struct intel_port *port, struct mr_reason *reason)
{
	const int n_least = (int)port->n_queues + 1;
	const int n_all = 2 * (int)port->n_queues + 1;
	const int n_most = n_all <= INTEL_MAX_VECTORS ? n_all : n_least;
	struct mr_reason why;
	int n_got = mr_pci_set_irqs(port->pci, (uint32_t)n_most,
				    port->vector_fds, &why);

	if (n_got >= n_least && n_got < n_most)
		n_got = mr_pci_set_irqs(port->pci, (uint32_t)n_least,
					port->vector_fds, &why);
	if (n_got >= n_least) {
		port->n_vectors = (uint32_t)n_got;
		return 0;
	}
	if (n_got < 0 && n_got != -ENOTSUP && n_got != -EIO)
		return mr_fail(reason, n_got, "%s", why.text);
	if (n_got > 0) {
		(void)mr_pci_set_irqs(port->pci, 0, NULL, NULL);
		(void)mr_fail(&why, 0, "%d vectors, not %d", n_got, n_least);
	}
	mr_log(port->base.ctx, MR_LOG_INFO, "%s: no interrupts, polling: %s",
	       port->base.info->name, why.text);
	return 0;
}

/* Assign vectors, and their bits in EIMS (igb) or IMS (82574). */
static void share_vectors(struct intel_port *port)
{
	const uint32_t n = port->n_queues;
	const bool is_igb = port->chip->is_igb;
	const bool has_tx = port->n_vectors == 2 * n + 1;

	for (uint32_t i = 0; i < n && port->n_vectors > 0; i++) {
		struct intel_rxq *rxq = &port->rxqs[i];
		struct intel_txq *txq = &port->txqs[i];

		rxq->irq_bit = is_igb ? 1u << i : (uint32_t)INTEL_IRQ_RXQ0 << i;
		rxq->base.queue.fd = port->vector_fds[i];
		rxq->base.queue.arm = mri_intel_rx_arm;
		if (!has_tx)
			continue;
		txq->irq_bit =
			is_igb ? 1u << (n + i) : (uint32_t)INTEL_IRQ_TXQ0 << i;
		txq->base.queue.fd = port->vector_fds[n + i];
	}
	port->irq_on_reg = is_igb ? INTEL_EIMS : INTEL_IMS;
	port->irq_cause_reg = is_igb ? INTEL_EICR : INTEL_ICR;
	if (port->n_vectors > 0)
		port->link_bit = is_igb ? 1u << (port->n_vectors - 1) :
					  INTEL_IRQ_OTHER | INTEL_IRQ_LSC;
}

int mri_intel_irq_open(struct intel_port *port, struct mr_reason *reason)
{
	const struct itimerspec tick = { .it_interval.tv_sec = TICK_S,
					 .it_value.tv_sec = TICK_S };
	int err = get_vectors(port, reason);

	if (err < 0)
		return err;
	share_vectors(port);
	port->base.fd = epoll_create1(EPOLL_CLOEXEC);
	port->timer_fd =
		timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (port->base.fd < 0 || port->timer_fd < 0 ||
	    timerfd_settime(port->timer_fd, 0, &tick, NULL) < 0)
		return mr_fail(reason, -EIO, "%s: no fd for its events: %s",
			       port->base.info->name, mr_strerror(errno));
	err = watch(port, port->timer_fd, SOURCE_TIMER);
	if (err == 0)
		err = watch(port, mr_pci_event_fd(port->pci), SOURCE_EVENTS);
	if (err == 0 && port->n_vectors > 0)
		err = watch(port, port->vector_fds[port->n_vectors - 1],
			    SOURCE_LINK);
	if (err < 0)
		return mr_fail(reason, -EIO, "%s: epoll_ctl: %s",
			       port->base.info->name, mr_strerror(-err));
	return 0;
}

void mri_intel_irq_close(struct intel_port *port)
{
	if (port->base.fd >= 0)
		close(port->base.fd);
	if (port->timer_fd >= 0)
		close(port->timer_fd);
	port->base.fd = port->timer_fd = -1;
}

/* Assign a vector to a queue: igb's table has a byte for each. */
static void map_queue(struct intel_port *port, uint32_t i, bool is_tx,
		      uint32_t vector)
{
	/* 82576: queues i and i + 8 share a word. Later chips: 2i and 2i + 1.
	 */
	const bool is_82576 = port->chip->is_82576;
	const uint32_t reg = INTEL_IVAR + 4 * (is_82576 ? i & 7 : i >> 1);
	const uint32_t shift =
		(is_82576 ? (i & 8) << 1 : (i & 1) << 4) + (is_tx ? 8 : 0);

	intel_write(port, reg,
		    (intel_read(port, reg) & ~(0xffu << shift)) |
			    (vector | INTEL_IVAR_VALID) << shift);
}

static uint32_t itr_us(const struct intel_port *port, uint32_t vector)
{
	return vector + 1 < port->n_vectors ? port->options.itr_us :
					      LINK_ITR_US;
}

static void start_igb(struct intel_port *port)
{
	const uint32_t n = port->n_queues;
	const uint32_t link_vector = port->n_vectors - 1;
	const uint32_t all = (uint32_t)((UINT64_C(1) << port->n_vectors) - 1);

	intel_write(port, INTEL_GPIE,
		    INTEL_GPIE_NSICR | INTEL_GPIE_MSIX_MODE | INTEL_GPIE_EIAME |
			    INTEL_GPIE_PBA);
	for (uint32_t i = 0; i < n; i++) {
		map_queue(port, i, false, i);
		if (port->txqs[i].irq_bit != 0)
			map_queue(port, i, true, n + i);
	}
	intel_write(port, INTEL_IVAR_MISC,
		    (link_vector | INTEL_IVAR_VALID)
			    << INTEL_IVAR_MISC_OTHER_SHIFT);
	for (uint32_t v = 0; v <= link_vector; v++)
		intel_write(port, INTEL_EITR + 4 * v,
			    itr_us(port, v) << INTEL_EITR_INTERVAL_SHIFT |
				    INTEL_EITR_CNT_IGNR);
	intel_write(port, INTEL_EIAC, all);
	intel_write(port, INTEL_EIAM, all);
	intel_write(port, INTEL_IMS, INTEL_IRQ_LSC);
}

static void start_82574(struct intel_port *port)
{
	const uint32_t n = port->n_queues;
	uint32_t ivar = INTEL_IVAR_82574_EVERY_WB |
			(port->n_vectors - 1 + INTEL_IVAR_82574_VALID)
				<< INTEL_IVAR_82574_OTHER_SHIFT;
	uint32_t queues = 0;

	/* Fields of 4 bits: two rx queues, two tx queues, the rest. */
	for (uint32_t i = 0; i < n; i++) {
		ivar |= (i | INTEL_IVAR_82574_VALID) << 4 * i;
		queues |= port->rxqs[i].irq_bit | port->txqs[i].irq_bit;
		if (port->txqs[i].irq_bit != 0)
			ivar |= (n + i + INTEL_IVAR_82574_VALID) << (8 + 4 * i);
	}
	intel_write(port, INTEL_IVAR_82574, ivar);
	for (uint32_t v = 0; v < port->n_vectors; v++) {
		const uint32_t itr = itr_us(port, v) * EITR_82574_PER_US;

		intel_write(port, INTEL_EITR_82574 + 4 * v,
			    itr < EITR_82574_MAX ? itr : EITR_82574_MAX);
	}
	intel_write(port, INTEL_EIAC_82574, queues);
	intel_write(port, INTEL_IAM, queues);
	intel_write(port, INTEL_CTRL_EXT,
		    intel_read(port, INTEL_CTRL_EXT) | INTEL_CTRL_EXT_EIAME);
}

void mri_intel_irq_start(struct intel_port *port)
{
	if (port->n_vectors == 0)
		return;
	if (port->chip->is_igb)
		start_igb(port);
	else
		start_82574(port);
	intel_write(port, port->irq_on_reg, port->link_bit);
}

void mri_intel_irq_forget(struct intel_port *port, int fd, uint32_t irq_bit)
{
	drain(fd);
	intel_write(port, port->irq_cause_reg, irq_bit);
	/* Reading back flushes the write. */
	(void)mri_intel_check(port, NULL);
}

void mri_intel_irq_arm(struct intel_port *port, uint32_t irq_bit)
{
	intel_write(port, port->irq_on_reg, irq_bit);
}

/* Re-enable the link interrupt; STATUS is read after this. */
static void rearm_link(struct intel_port *port)
{
	drain(port->vector_fds[port->n_vectors - 1]);
	/* Reading the 82574's ICR would clear causes of queues. */
	if (port->chip->is_igb)
		(void)intel_read(port, INTEL_ICR);
	else
		intel_write(port, INTEL_ICR, port->link_bit | INTEL_IRQ_OTHERS);
	intel_write(port, port->irq_on_reg, port->link_bit);
}

/* Report it once, whoever found it: a burst, a control call, or the kernel. */
static int tell_gone(struct intel_port *port)
{
	if (port->has_told_gone)
		return 0;
	port->has_told_gone = true;
	__atomic_store_n(&port->is_up, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&port->speed_mbps, 0, __ATOMIC_RELAXED);
	return 1;
}

/* Events from the kernel: a device about to go, or after an error. */
static void handle_events(struct intel_port *port)
{
	const uint32_t events = mr_pci_events(port->pci);

	if (events == 0)
		return;
	if (events & MR_PCI_EVENT_REQ)
		mr_log(port->base.ctx, MR_LOG_WARNING,
		       "%s: the device is about to be unplugged: close the "
		       "port",
		       port->base.info->name);
	else
		mr_log(port->base.ctx, MR_LOG_ERROR,
		       "%s: the device had an error on the bus: close the port "
		       "and open it again",
		       port->base.info->name);
	__atomic_store_n(&port->is_gone, 1, __ATOMIC_RELAXED);
}

uint32_t mri_intel_poll(struct mr_port *base)
{
	struct intel_port *port = (struct intel_port *)base;
	struct epoll_event ready[N_SOURCES];
	const int n = epoll_wait(base->fd, ready, N_SOURCES, 0);
	bool is_tick = false;
	int n_events = 0;

	/* Do not touch a device that is gone; drain what is ready. */
	for (int i = 0; i < n; i++) {
		if (ready[i].data.u32 == SOURCE_EVENTS) {
			handle_events(port);
		} else if (ready[i].data.u32 == SOURCE_TIMER) {
			drain(port->timer_fd);
			is_tick = true;
		} else if (!intel_is_gone(port)) {
			rearm_link(port);
		} else {
			drain(port->vector_fds[port->n_vectors - 1]);
		}
	}
	if (is_tick)
		mri_intel_stats_read(port);
	if (!intel_is_gone(port))
		n_events += mri_intel_look(port);
	if (intel_is_gone(port))
		n_events += tell_gone(port);
	return n_events;
}
