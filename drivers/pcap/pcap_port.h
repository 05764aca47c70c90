/* SPDX-License-Identifier: BSD-3-Clause */
/* pcap: what its files share. The picture is in pcap.c. */
#ifndef PCAP_PCAP_PORT_H
#define PCAP_PCAP_PORT_H

#include <pcap/pcap.h>
#include <stdio.h>

#include <millrace/driver.h>

/* The longest frame that other programs read: libpcap's own limit. */
enum { PCAP_MAX_FRAME_BYTES = 262144 };

struct pcap_rxq {
	_Alignas(64) struct mr_rxq base;
	pcap_t *pcap;        /* NULL: no rx= */
	int fd;              /* the file; pcap reads a duplicate */
	uint32_t is_at_end;  /* atomic */
	uint32_t n_passes;   /* left, including this one; 0: unlimited */
	uint64_t n_begun;    /* atomic: passes that had a frame so far */
	bool has_begun;      /* this one had */
	bool is_damaged;     /* logged */
	uint32_t max_segs;   /* entries per frame */
	uint32_t room_bytes; /* of a buffer, without headroom and tailroom */
	uint32_t fcs_bytes;  /* at the end of each record */
	uint64_t n_records;  /* of this pass, so far */
	/* Atomic: records after an interface of another link type. */
	uint64_t n_other_link;
	/* The next record; valid until pcap reads on. */
	const struct pcap_pkthdr *record; /* NULL: read one */
	const uint8_t *bytes;
	uint32_t n_bytes; /* of the frame, without FCS */
};

struct pcap_txq {
	_Alignas(64) struct mr_txq base;
	pcap_t *pcap;          /* libpcap needs it for a dumper */
	pcap_dumper_t *dumper; /* NULL: no tx= */
	FILE *file;            /* the dumper's */
	int64_t n_file_bytes;  /* of whole records; -1: cannot be truncated */
	uint8_t *frame;        /* one frame, in one piece */
	char *buffer;          /* of file */
};

struct pcap_port {
	struct mr_port base;
	struct pcap_rxq rxq;
	struct pcap_txq txq;
	struct mr_rxq *rxqs[1];
	struct mr_txq *txqs[1];
	bool has_rx;
	int fd; /* an eventfd that never becomes readable */
};

mr_rx_burst_fn mri_pcap_rx_burst;
mr_tx_burst_fn mri_pcap_tx_burst;
int mri_pcap_rx_arm(struct mr_queue *queue);
int mri_pcap_tx_arm(struct mr_queue *queue);

/* Read the file from its first byte. NULL: errno is set. */
FILE *mri_pcap_file(int fd);
/* The same, through libpcap; NULL with its reason. */
pcap_t *mri_pcap_read_from_start(int fd, char *ret_error);

/* The interfaces of a pcapng file. */
struct pcapng_facts {
	uint32_t n_interfaces;
	uint16_t link_type;       /* of the first: LINKTYPE_* */
	uint16_t other_link_type; /* of the first that has another one */
	bool has_other;           /* there is such an interface */
	uint32_t fcs_bytes;       /* of the first */
	bool has_other_fcs;       /* an interface has another length */
	uint64_t n_records;
};

/*
 * Read the blocks before the first record, or the whole file. False: it is not
 * a pcapng file.
 */
bool mri_pcapng_read(int fd, bool is_whole, struct pcapng_facts *ret);

#endif
