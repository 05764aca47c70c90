/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bare IF IF [ADDRESS MAC]: connect two interfaces with bare.bpf.c until
 * SIGINT, or translate the source of frames from the first one to ADDRESS.
 */
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/ether.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "bare.skel.h"

static int attach_program(struct bare_bpf *s, const struct bpf_program *program,
			  const uint32_t ifindexes[2])
{
	for (uint32_t i = 0; i < 2; i++)
		if (bpf_map_update_elem(bpf_map__fd(s->maps.targets), &i,
					&ifindexes[i], BPF_ANY) < 0 ||
		    bpf_program__attach_xdp(program, (int)ifindexes[i]) == NULL)
			return -1;
	return 0;
}

int main(int argc, char **argv)
{
	struct bare_bpf *s = bare_bpf__open();
	uint32_t ifindexes[2] = { 0 };
	struct ether_addr mac = { 0 };
	struct in_addr addr = { 0 };
	sigset_t ends;
	int signal;

	for (int i = 0; i < 2 && argc >= 3; i++)
		ifindexes[i] = if_nametoindex(argv[1 + i]);
	if (s == NULL || ifindexes[0] == 0 || ifindexes[1] == 0 ||
	    (argc != 3 &&
	     (argc != 5 || inet_pton(AF_INET, argv[3], &addr) != 1 ||
	      ether_aton_r(argv[4], &mac) == NULL))) {
		fprintf(stderr, "usage: bare IF IF [ADDRESS MAC]\n");
		return 2;
	}
	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	s->rodata->first = ifindexes[0];
	s->rodata->addr = addr.s_addr;
	memcpy((void *)&s->rodata->mac, &mac, sizeof(mac));
	if (bare_bpf__load(s) != 0 ||
	    attach_program(s, argc == 3 ? s->progs.redirect : s->progs.rewrite,
			   ifindexes) < 0) {
		perror("bare");
		return 1;
	}
	return sigwait(&ends, &signal); /* ends links and programs */
}
