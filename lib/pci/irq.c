/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Interrupts and events: eventfds that the kernel or a software device signals.
 *
 * Events are two eventfds behind one epoll fd, so that sleeping on a port takes
 * one fd for both, and telling them apart takes no read.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/base.h"
#include "pci/pci.h"

/* The device's number of vectors, of MSI-X or MSI. */
static int count_vectors(struct mr_pci *pci, uint32_t *ret_n)
{
	uint16_t control;
	uint32_t offset;
	int err = mr_pci_find_cap(pci, MRI_PCI_CAP_MSIX, 0, &offset);

	if (err == 0) {
		err = mr_pci_read_config(pci, offset + MRI_MSIX_CONTROL,
					 &control, 2);
		if (err == 0)
			*ret_n = (control & MRI_MSIX_SIZE_MASK) + 1u;
	} else if (err == -ENOENT) {
		err = mr_pci_find_cap(pci, MRI_PCI_CAP_MSI, 0, &offset);
		*ret_n = 1;
	}
	return err == -ENOENT ? -ENOTSUP : err;
}

static void close_fds(struct mr_pci *pci)
{
	for (uint32_t i = 0; i < pci->n_irqs; i++)
		mr_fd_close(pci->irq_fds[i]);
	mr_free(pci->ctx, pci->irq_fds);
	pci->irq_fds = NULL;
	pci->n_irqs = 0;
}

static int open_fds(struct mr_pci *pci, uint32_t n)
{
	pci->irq_fds = mr_alloc(pci->ctx, 0, n * sizeof(pci->irq_fds[0]));
	if (pci->irq_fds == NULL)
		return -ENOMEM;
	while (pci->n_irqs < n) {
		const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

		if (fd < 0) {
			const int err = -errno;

			close_fds(pci);
			return err;
		}
		pci->irq_fds[pci->n_irqs++] = fd;
	}
	return 0;
}

/*
 * The machine may have fewer free vectors than the device. Each answer is
 * smaller than the request, so this ends.
 */
static int arm_irqs(struct mr_pci *pci)
{
	uint32_t n = pci->n_irqs;
	int got = -ENOTSUP;

	while (n > 0) {
		got = pci->backend->set_irqs(pci->device, n, pci->irq_fds);
		if (got <= 0 || (uint32_t)got >= n)
			break;
		n = (uint32_t)got;
	}
	if (got != 0)
		return got < 0 ? got : -EIO;
	while (pci->n_irqs > n)
		mr_fd_close(pci->irq_fds[--pci->n_irqs]);
	return 0;
}

int mr_pci_set_irqs(struct mr_pci *pci, uint32_t n, int *ret_fds,
		    struct mr_reason *reterr_reason)
{
	uint32_t n_vectors = 0;
	int err;

	if (n > MRI_PCI_MAX_IRQS)
		return mr_fail(
			reterr_reason, -EINVAL,
			"%s: %u interrupts requested, at most %d supported",
			pci->info.bdf, n, MRI_PCI_MAX_IRQS);
	if (pci->n_irqs > 0)
		(void)pci->backend->set_irqs(pci->device, 0, NULL);
	close_fds(pci);
	if (n == 0)
		return 0;
	err = pci->backend->set_irqs != NULL ? count_vectors(pci, &n_vectors) :
					       -ENOTSUP;
	if (err < 0)
		return mr_fail(reterr_reason, err,
			       err == -ENOTSUP ?
				       "%s: has neither MSI-X nor MSI" :
				       "%s: does not report its interrupts",
			       pci->info.bdf);
	err = open_fds(pci, mri_min_u32(n, n_vectors));
	if (err < 0)
		return mr_fail(reterr_reason, err,
			       "%s: no eventfd for an interrupt: %s",
			       pci->info.bdf, mr_strerror(-err));
	err = arm_irqs(pci);
	if (err < 0) {
		close_fds(pci);
		return mr_fail(reterr_reason, -EIO,
			       "%s: cannot enable %u interrupts: %s",
			       pci->info.bdf, mri_min_u32(n, n_vectors),
			       mr_strerror(-err));
	}
	memcpy(ret_fds, pci->irq_fds, pci->n_irqs * sizeof(ret_fds[0]));
	return (int)pci->n_irqs;
}

static int watch_fd(int epoll_fd, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

void mri_pci_open_events(struct mr_pci *pci)
{
	if (pci->backend->set_events == NULL)
		return;
	pci->req_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pci->err_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pci->event_fd = epoll_create1(EPOLL_CLOEXEC);
	if (pci->req_fd >= 0 && pci->err_fd >= 0 && pci->event_fd >= 0 &&
	    watch_fd(pci->event_fd, pci->req_fd) == 0 &&
	    watch_fd(pci->event_fd, pci->err_fd) == 0 &&
	    pci->backend->set_events(pci->device, pci->req_fd, pci->err_fd) ==
		    0)
		return;
	mri_pci_close_events(pci);
	mr_log(pci->ctx, MR_LOG_WARNING,
	       "%s: no hot-plug events; only its registers will show an unplug",
	       pci->info.bdf);
}

void mri_pci_close_events(struct mr_pci *pci)
{
	if (pci->req_fd >= 0)
		(void)pci->backend->set_events(pci->device, -1, -1);
	mr_fd_close(pci->event_fd);
	mr_fd_close(pci->req_fd);
	mr_fd_close(pci->err_fd);
	pci->event_fd = pci->req_fd = pci->err_fd = -1;
}

int mr_pci_event_fd(const struct mr_pci *pci)
{
	return pci->event_fd;
}

uint32_t mr_pci_events(struct mr_pci *pci)
{
	uint32_t events = 0;
	uint64_t n;

	if (read(pci->req_fd, &n, sizeof(n)) == (ssize_t)sizeof(n))
		events |= MR_PCI_EVENT_REQ;
	if (read(pci->err_fd, &n, sizeof(n)) == (ssize_t)sizeof(n))
		events |= MR_PCI_EVENT_ERR;
	return events;
}
