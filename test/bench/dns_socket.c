/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * examples/dns.c on a UDP socket, with at most BATCH queries per system call:
 * what ./mr bench dns compares that example with.
 *
 *     dns-socket ADDRESS BATCH
 */
#define main dns_main
#include "dns.c" /* of examples/ */
#undef main

#include <stdlib.h>
#include <sys/socket.h>

enum { MAX_BATCH = 64, MAX_BYTES = 512 + RECORD + EDNS };

static uint8_t bytes[MAX_BATCH][MAX_BYTES];
static struct sockaddr_in who[MAX_BATCH];
static struct iovec vectors[MAX_BATCH];
static struct mmsghdr messages[MAX_BATCH];

/* Answer n queries, with the answers at the front. Returns how many. */
static uint32_t answer_all(uint32_t n)
{
	uint32_t n_out = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct mmsghdr *out = &messages[n_out];
		const uint32_t len = answer(bytes[i], messages[i].msg_len);

		if (len == 0)
			continue;
		out->msg_hdr.msg_iov->iov_base = bytes[i];
		out->msg_hdr.msg_iov->iov_len = len;
		out->msg_hdr.msg_name = &who[i];
		n_out++;
	}
	return n_out;
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons(53) };
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	const unsigned long batch = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;

	if (batch < 1 || batch > MAX_BATCH ||
	    inet_pton(AF_INET, argv[1], &address.sin_addr) != 1)
		errx(2, "usage: %s ADDRESS BATCH", argv[0]);
	if (fd < 0 ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		err(1, "%s", argv[1]);
	for (;;) {
		int n_in;

		for (unsigned long i = 0; i < batch; i++) {
			vectors[i] = (struct iovec){ bytes[i], 512 };
			messages[i].msg_hdr =
				(struct msghdr){ .msg_iov = &vectors[i],
						 .msg_iovlen = 1,
						 .msg_name = &who[i],
						 .msg_namelen = sizeof(*who) };
		}
		n_in = recvmmsg(fd, messages, (unsigned int)batch,
				MSG_WAITFORONE, NULL);
		if (n_in > 0 &&
		    sendmmsg(fd, messages, answer_all((uint32_t)n_in), 0) < 0)
			warn("sendmmsg");
	}
}
