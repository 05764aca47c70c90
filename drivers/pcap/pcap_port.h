/* SPDX-License-Identifier: BSD-3-Clause */
/* pcap: what its files share. The picture is in pcap.c. */
#ifndef PCAP_PCAP_PORT_H
#define PCAP_PCAP_PORT_H

#include <pcap/pcap.h>
#include <stdio.h>

#include <millrace/driver.h>

/* Longest frame of a capture that other programs read: libpcap's own limit. */
enum { PCAP_MAX_FRAME_BYTES = 262144 };

/* A capture that frames come from. */
struct pcap_rxq {
	_Alignas(64) struct mr_rxq base;
	pcap_t *pcap;        /* NULL: no rx= */
	int fd;              /* the file; what pcap reads is a duplicate */
	uint32_t is_at_end;  /* atomic */
	uint32_t n_passes;   /* left, this one included; 0: for ever */
	uint64_t n_begun;    /* atomic: passes that had a frame so far */
	bool has_begun;      /* this one had */
	bool is_damaged;     /* the file, which was logged */
	uint32_t max_segs;   /* entries per frame */
	uint32_t room_bytes; /* of a buffer, without head- and tailroom */
	/* The record that is next, pcap's until it reads on. */
	const struct pcap_pkthdr *record; /* NULL: read one */
	const uint8_t *bytes;
};

/* A capture that frames go to. */
struct pcap_txq {
	_Alignas(64) struct mr_txq base;
	pcap_t *pcap;          /* what libpcap wants for a dumper */
	pcap_dumper_t *dumper; /* NULL: no tx= */
	FILE *file;            /* the dumper's */
	int64_t n_file_bytes;  /* of whole records; -1: cannot be cut off */
	uint8_t *frame;        /* room for one, put together */
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

/* Begin to read the file from its first byte. NULL, with libpcap's reason. */
pcap_t *mri_pcap_read_from_start(int fd, char *ret_error);

#endif
