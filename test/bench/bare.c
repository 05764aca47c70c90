/* SPDX-License-Identifier: BSD-3-Clause */
/* bare IF IF: connect two interfaces by bare.bpf.c until SIGINT. */
#include <net/if.h>
#include <signal.h>
#include <stdio.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "bare.skel.h"

static int attach(struct bare_bpf *s, const uint32_t ifindexes[2])
{
	for (uint32_t i = 0; i < 2; i++)
		if (bpf_map_update_elem(bpf_map__fd(s->maps.targets), &i,
					&ifindexes[i], BPF_ANY) < 0 ||
		    bpf_program__attach_xdp(s->progs.bare,
					    (int)ifindexes[i]) == NULL)
			return -1;
	return 0;
}

int main(int argc, char **argv)
{
	struct bare_bpf *s = bare_bpf__open();
	uint32_t ifindexes[2] = { 0 };
	sigset_t ends;
	int signal;

	for (int i = 0; i < 2 && argc == 3; i++)
		ifindexes[i] = if_nametoindex(argv[1 + i]);
	if (s == NULL || ifindexes[0] == 0 || ifindexes[1] == 0) {
		fprintf(stderr, "usage: bare IF IF, two interfaces\n");
		return 2;
	}
	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	s->rodata->first = ifindexes[0];
	if (bare_bpf__load(s) != 0 || attach(s, ifindexes) < 0) {
		perror("bare");
		return 1;
	}
	return sigwait(&ends, &signal); /* links and programs end with it */
}
