/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/pci/irq.c, on a device in software. */
#include "support/pci_unit.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>

static void raise_event(int fd)
{
	const uint64_t one = 1;

	assert_int_equal(write(fd, &one, sizeof(one)), sizeof(one));
}

static bool is_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

PCI_TEST(vectors_are_fds_that_become_readable)
{
	int fds[3];
	uint64_t n;

	assert_int_equal(mr_pci_set_irqs(f.pci, 3, fds, NULL), 3);
	assert_int_equal(f.nic.n_irqs, 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(fds[i], f.nic.irq_fds[i]);
		assert_true(fcntl(fds[i], F_GETFD) & FD_CLOEXEC);
		assert_true(fcntl(fds[i], F_GETFL) & O_NONBLOCK);
		assert_false(is_readable(fds[i]));
	}
	raise_event(f.nic.irq_fds[1]);
	assert_true(is_readable(fds[1]));
	assert_false(is_readable(fds[0]));
	assert_int_equal(read(fds[1], &n, sizeof(n)), sizeof(n));
	/* Those of the next call replace them. */
	assert_int_equal(mr_pci_set_irqs(f.pci, 1, fds, NULL), 1);
	assert_int_equal(f.nic.n_irqs, 1);
	assert_int_equal(mr_pci_set_irqs(f.pci, 0, NULL, NULL), 0);
	assert_int_equal(f.nic.n_irqs, 0);
}

PCI_TEST(fewer_interrupts_than_wanted_are_set)
{
	int fds[SOFT_MAX_IRQS + 1];

	/* The table of MSI-X has no more. */
	assert_int_equal(mr_pci_set_irqs(f.pci, SOFT_MAX_IRQS + 1, fds, NULL),
			 SOFT_MAX_IRQS);
	/* The machine has no more. */
	f.nic.most_irqs = 3;
	assert_int_equal(mr_pci_set_irqs(f.pci, 5, fds, NULL), 3);
	assert_int_equal(f.nic.n_irqs, 3);
	f.nic.config[0x40] = 0x05; /* MSI: one */
	assert_int_equal(mr_pci_set_irqs(f.pci, 5, fds, NULL), 1);
}

PCI_TEST(failure_leaves_no_interrupt)
{
	uint32_t n_fds;
	int fds[4];

	n_fds = n_open_fds();
	f.nic.irq_err = -EBUSY;
	assert_failure(mr_pci_set_irqs(f.pci, 4, fds, &f.why), -EIO,
		       "cannot enable 4 interrupts: ");
	f.nic.irq_err = 0;
	f.nic.config[0x40] = 0x10; /* neither MSI-X nor MSI */
	assert_failure(mr_pci_set_irqs(f.pci, 4, fds, &f.why), -ENOTSUP,
		       "neither MSI-X nor MSI");
	f.nic.config_err = -EIO;
	assert_failure(mr_pci_set_irqs(f.pci, 4, fds, &f.why), -EIO,
		       "does not report its interrupts");
	f.nic.config_err = 0;
	assert_int_equal(n_open_fds(), n_fds);
	assert_int_equal(f.nic.n_irqs, 0);
}

PCI_TEST(a_wrong_number_of_interrupts_changes_nothing)
{
	int fds[2], others[2];

	assert_int_equal(mr_pci_set_irqs(f.pci, 2, fds, NULL), 2);
	assert_failure(mr_pci_set_irqs(f.pci, 2049, others, &f.why), -EINVAL,
		       "2049 interrupts requested, at most 2048");
	assert_int_equal(f.nic.n_irqs, 2);
	raise_event(f.nic.irq_fds[1]);
	assert_true(is_readable(fds[1]));
}

/* The list of capabilities can be read, the one of MSI-X cannot. */
PCI_TEST(a_table_size_that_cannot_be_read_is_an_error)
{
	int fds[1];

	f.nic.dead_config = 0x42;
	assert_failure(mr_pci_set_irqs(f.pci, 1, fds, &f.why), -EIO,
		       "does not report its interrupts");
	f.nic.dead_config = 0;
}

static int lowest_free_fd(void)
{
	const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	close(fd);
	return fd;
}

PCI_TEST(no_more_fds_is_an_error)
{
	struct rlimit limit, small;
	uint32_t n_fds;
	int fds[4];

	n_fds = n_open_fds();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	small = limit;
	small.rlim_cur = (rlim_t)lowest_free_fd() + 2;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &small), 0);
	assert_int_equal(mr_pci_set_irqs(f.pci, 4, fds, &f.why), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_reason_has(&f.why, "ulimit -n");
	assert_int_equal(n_open_fds(), n_fds);
	f.allocator.fail_at = f.allocator.n_calls + 1;
	assert_int_equal(mr_pci_set_irqs(f.pci, 4, fds, &f.why), -ENOMEM);
}

PCI_TEST(one_fd_reports_both_events)
{
	assert_false(is_readable(mr_pci_event_fd(f.pci)));
	assert_int_equal(mr_pci_events(f.pci), 0);
	raise_event(f.nic.req_fd);
	assert_true(is_readable(mr_pci_event_fd(f.pci)));
	assert_int_equal(mr_pci_events(f.pci), MR_PCI_EVENT_REQ);
	assert_false(is_readable(mr_pci_event_fd(f.pci)));
	raise_event(f.nic.err_fd);
	assert_int_equal(mr_pci_events(f.pci), MR_PCI_EVENT_ERR);
	raise_event(f.nic.err_fd);
	raise_event(f.nic.req_fd);
	assert_int_equal(mr_pci_events(f.pci),
			 MR_PCI_EVENT_REQ | MR_PCI_EVENT_ERR);
}

/* It works without, and says so. */
PCI_CLOSED_TEST(a_device_may_refuse_events)
{
	f.nic.events_err = -EINVAL;
	assert_int_equal(pci_try("nic", &f.pci, NULL), 0);
	assert_int_equal(mr_pci_event_fd(f.pci), -1);
	assert_int_equal(mr_pci_events(f.pci), 0);
	assert_non_null(
		strstr(f.allocator.last_line, "nic: no hot-plug events"));
	assert_int_equal(n_open_fds(), f.n_fds);
}
