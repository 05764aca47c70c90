/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pcap: capture files as a port, read and written by libpcap.
 *
 *     rx=IN.pcap --> libpcap --copy--> buffers of the pool --> rx burst
 *     tx=OUT.pcap <-- libpcap <--copy-- tx burst
 *
 * Files are locked while open: two ports that write one file would corrupt it.
 * Closing unlocks explicitly, since a forked child with a copy of the fd would
 * keep the lock.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "pcap_port.h"

enum { WRITE_BUFFER_BYTES = 262144, MAX_PASSES = 1000000000 };

static int not_plain(const char *path, struct mr_reason *reterr_reason)
{
	return mr_fail(reterr_reason, -EINVAL,
		       "pcap: '%s' is not a regular file", path);
}

static int file_error(const char *path, const char *verb,
		      struct mr_reason *reterr_reason)
{
	int code = -EIO;

	/* A pipe that nobody reads, or a socket. */
	if (errno == ENXIO)
		return not_plain(path, reterr_reason);
	if (errno == ENOENT || errno == ENOTDIR)
		code = -ENODEV;
	if (errno == EACCES || errno == EPERM || errno == EROFS)
		code = -EPERM;
	return mr_fail(reterr_reason, code, "pcap: cannot %s '%s': %s", verb,
		       path, mr_strerror(errno));
}

/*
 * Open and lock a file. Files that might block, such as pipes, are refused,
 * because they would block a burst. Returns an fd.
 */
static int open_file(const char *path, int flags, int lock,
		     struct mr_reason *reterr_reason)
{
	const bool writes = lock == LOCK_EX;
	int fd, err;
	struct stat st;

	/* O_NONBLOCK: opening a pipe does not wait for its other end. */
	fd = open(path, flags | O_CLOEXEC | O_NONBLOCK, 0666);
	if (fd < 0)
		return file_error(path, writes ? "write" : "read",
				  reterr_reason);
	if (fstat(fd, &st) < 0) {
		err = file_error(path, "look at", reterr_reason);
	} else if (!S_ISREG(st.st_mode) && !(writes && S_ISCHR(st.st_mode))) {
		err = not_plain(path, reterr_reason);
	} else if (S_ISREG(st.st_mode) && flock(fd, lock | LOCK_NB) < 0 &&
		   errno == EWOULDBLOCK) {
		err = mr_fail(reterr_reason, -EBUSY,
			      "pcap: '%s' is %s by another port", path,
			      writes ? "read or written" : "written");
	} else {
		return fd;
	}
	close(fd);
	return err;
}

FILE *mri_pcap_file(int fd)
{
	const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	FILE *file = NULL;

	if (copy >= 0 && lseek(fd, 0, SEEK_SET) == 0)
		file = fdopen(copy, "r");
	if (file == NULL && copy >= 0)
		close(copy);
	return file;
}

pcap_t *mri_pcap_read_from_start(int fd, char *ret_error)
{
	FILE *file = mri_pcap_file(fd);
	pcap_t *pcap;

	if (file == NULL) {
		snprintf(ret_error, PCAP_ERRBUF_SIZE, "%s", mr_strerror(errno));
		return NULL;
	}
	pcap = pcap_fopen_offline_with_tstamp_precision(
		file, PCAP_TSTAMP_PRECISION_NANO, ret_error);
	if (pcap == NULL)
		fclose(file);
	return pcap;
}

static int open_rx(struct pcap_port *port, const char *path,
		   struct mr_reason *reterr_reason)
{
	struct pcap_rxq *rxq = &port->rxq;
	char error[PCAP_ERRBUF_SIZE];
	struct pcapng_facts facts;
	const char *link_type;
	int extension;

	rxq->fd = open_file(path, O_RDONLY, LOCK_SH, reterr_reason);
	if (rxq->fd < 0)
		return rxq->fd;
	/* A pcap file has the length of the FCS in its link type: see below. */
	if (mri_pcapng_read(rxq->fd, false, &facts))
		rxq->fcs_bytes = facts.fcs_bytes;
	rxq->pcap = mri_pcap_read_from_start(rxq->fd, error);
	if (rxq->pcap == NULL)
		return mr_fail(reterr_reason, -EINVAL,
			       "pcap: '%s' is not a capture: %s", path, error);
	extension = pcap_datalink_ext(rxq->pcap);
	if (LT_FCS_LENGTH_PRESENT(extension))
		rxq->fcs_bytes = 2 * LT_FCS_LENGTH((uint32_t)extension);
	if (facts.has_other_fcs)
		return mr_fail(reterr_reason, -ENOTSUP,
			       "pcap: '%s': its interfaces differ in the "
			       "length of the FCS; capture them apart",
			       path);
	if (pcap_datalink(rxq->pcap) == DLT_EN10MB)
		return 0;
	link_type = pcap_datalink_val_to_name(pcap_datalink(rxq->pcap));
	return mr_fail(
		reterr_reason, -ENOTSUP,
		"pcap: '%s' has link type %s (%d); only Ethernet is supported",
		path, link_type != NULL ? link_type : "?",
		pcap_datalink(rxq->pcap));
}

static int open_tx(struct pcap_port *port, const char *path,
		   struct mr_reason *reterr_reason)
{
	struct pcap_txq *txq = &port->txq;
	struct mr_ctx *ctx = port->base.ctx;
	int fd;

	txq->frame = mr_alloc(ctx, 0, PCAP_MAX_FRAME_BYTES);
	txq->buffer = mr_alloc(ctx, 0, WRITE_BUFFER_BYTES);
	txq->pcap = pcap_open_dead_with_tstamp_precision(
		DLT_EN10MB, PCAP_MAX_FRAME_BYTES, PCAP_TSTAMP_PRECISION_NANO);
	if (txq->frame == NULL || txq->buffer == NULL || txq->pcap == NULL)
		return mr_fail(reterr_reason, -ENOMEM,
			       "no memory for writing captures");
	fd = open_file(path, O_WRONLY | O_CREAT, LOCK_EX, reterr_reason);
	if (fd < 0)
		return fd;
	/* Truncate only now that it is locked. */
	txq->n_file_bytes = ftruncate(fd, 0) == 0 ? 0 : -1;
	txq->file = fdopen(fd, "w");
	if (txq->file == NULL) {
		close(fd);
		return mr_fail(reterr_reason, -ENOMEM, "no memory for a file");
	}
	setvbuf(txq->file, txq->buffer, _IOFBF, WRITE_BUFFER_BYTES);
	txq->dumper = pcap_dump_fopen(txq->pcap, txq->file);
	if (txq->dumper == NULL || fflush(txq->file) != 0)
		return file_error(path, "write", reterr_reason);
	if (txq->n_file_bytes == 0)
		txq->n_file_bytes = ftell(txq->file);
	return 0;
}

/* Also undoes a partial open. */
static void pcap_port_close(struct mr_port *base)
{
	struct pcap_port *port = (struct pcap_port *)base;
	struct pcap_txq *txq = &port->txq;

	if (txq->file != NULL)
		flock(fileno(txq->file), LOCK_UN);
	if (txq->dumper != NULL)
		pcap_dump_close(txq->dumper); /* closes the file */
	else if (txq->file != NULL)
		fclose(txq->file);
	if (txq->pcap != NULL)
		pcap_close(txq->pcap);
	mr_free(base->ctx, txq->buffer);
	mr_free(base->ctx, txq->frame);

	if (port->rxq.pcap != NULL)
		pcap_close(port->rxq.pcap);
	if (port->rxq.fd >= 0) {
		flock(port->rxq.fd, LOCK_UN);
		close(port->rxq.fd);
	}
	if (port->fd >= 0)
		close(port->fd);
}

static int read_options(struct pcap_port *port, const struct mr_spec *spec,
			const char **ret_rx, const char **ret_tx,
			struct mr_reason *reterr_reason)
{
	static const char *const on_off[] = { "on", "off", NULL };
	uint32_t is_off;
	int err;

	*ret_rx = mr_spec_get(spec, "rx");
	*ret_tx = mr_spec_get(spec, "tx");
	if (mr_spec_device(spec)[0] != '\0' ||
	    (*ret_rx == NULL && *ret_tx == NULL))
		return mr_fail(reterr_reason, -EINVAL,
			       "pcap: give rx=FILE to read, tx=FILE to write, "
			       "or both, such as pcap:rx=in.pcap,tx=out.pcap");
	err = mr_spec_get_word(spec, "sg", on_off, &is_off, reterr_reason);
	if (err == 0)
		err = mr_spec_get_u32(spec, "loop", 1, 0, MAX_PASSES,
				      &port->rxq.n_passes, reterr_reason);
	port->rxq.max_segs = is_off ? 1 : MR_MAX_SEGS;
	port->rxq.room_bytes = mr_port_room_bytes(&port->base);
	return err;
}

static void make_queues(struct pcap_port *port)
{
	struct mr_port *base = &port->base;

	port->rxq.base = (struct mr_rxq){
		.queue = { .port = base,
			   .arm = mri_pcap_rx_arm,
			   .fd = port->fd },
		.burst = mri_pcap_rx_burst,
		.n_min = port->rxq.max_segs,
	};
	port->has_rx = port->rxq.pcap != NULL;
	port->rxq.is_at_end = !port->has_rx;
	port->txq.base = (struct mr_txq){
		.queue = { .port = base,
			   .arm = mri_pcap_tx_arm,
			   .fd = port->fd },
		.burst = mri_pcap_tx_burst,
	};
	port->rxqs[0] = &port->rxq.base;
	port->txqs[0] = &port->txq.base;
	base->rxqs = port->rxqs;
	base->txqs = port->txqs;
	base->info->n_rxqs = base->info->n_txqs = 1;
	base->info->has_sg = port->rxq.max_segs > 1;
	/* Times of the capture: those read, and those written. */
	base->info->offloads = MR_OFFLOAD_TIME_RX | MR_OFFLOAD_LAUNCH_TIME;
	base->info->launch_clock = CLOCK_REALTIME;
	snprintf(base->info->mode, sizeof(base->info->mode), "file");
}

static int pcap_port_open(struct mr_port *base, const struct mr_spec *spec,
			  struct mr_reason *reterr_reason)
{
	struct pcap_port *port = (struct pcap_port *)base;
	const char *rx, *tx;
	int err;

	port->rxq.fd = -1;
	port->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (port->fd < 0)
		return mr_fail(reterr_reason, -EIO, "pcap: no eventfd: %s",
			       mr_strerror(errno));
	err = read_options(port, spec, &rx, &tx, reterr_reason);
	if (err == 0 && rx != NULL)
		err = open_rx(port, rx, reterr_reason);
	if (err == 0 && tx != NULL)
		err = open_tx(port, tx, reterr_reason);
	if (err < 0) {
		pcap_port_close(base);
		return err;
	}
	make_queues(port);
	return 0;
}

/* Up while there may be something to receive, or to write to. */
static int pcap_port_link(const struct mr_port *base, struct mr_link *ret_link)
{
	const struct pcap_port *port = (const struct pcap_port *)base;
	const bool is_ended =
		__atomic_load_n(&port->rxq.is_at_end, __ATOMIC_ACQUIRE);

	*ret_link = (struct mr_link){ .is_up = !port->has_rx || !is_ended,
				      .is_ended = is_ended };
	return 0;
}

static uint32_t pcap_port_device_stats(const struct mr_port *base,
				       struct mr_named_count *ret_counts,
				       uint32_t n)
{
	const struct pcap_port *port = (const struct pcap_port *)base;

	if (!port->has_rx)
		return 0;
	if (n > 0)
		ret_counts[0] = (struct mr_named_count){
			"passes", mr_counter_get(&port->rxq.n_begun)
		};
	return 1;
}

static uint32_t pcap_port_device_drops(const struct mr_port *base,
				       struct mr_named_count *ret_counts,
				       uint32_t n)
{
	const struct pcap_port *port = (const struct pcap_port *)base;

	if (!port->has_rx)
		return 0;
	if (n > 0)
		ret_counts[0] = (struct mr_named_count){
			"rx_other_link_type",
			mr_counter_get(&port->rxq.n_other_link)
		};
	return 1;
}

static const char *const pcap_keys[] = { "rx", "tx", "loop", "sg", NULL };

extern const struct mr_driver mr_driver_pcap;
const struct mr_driver mr_driver_pcap = {
	.name = "pcap",
	.keys = pcap_keys,
	.port_bytes = sizeof(struct pcap_port),
	.open = pcap_port_open,
	.close = pcap_port_close,
	.link = pcap_port_link,
	.device_drops = pcap_port_device_drops,
	.device_stats = pcap_port_device_stats,
};
