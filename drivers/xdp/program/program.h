/* SPDX-License-Identifier: BSD-3-Clause */
/* The XDP program of a port, and those of others. */
#ifndef XDP_PROGRAM_PROGRAM_H
#define XDP_PROGRAM_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/bpf.h>

#include <bpf/libbpf.h>

#include <millrace/experimental/driver_offload.h>

#include "program/rx_meta.h"

struct xdp_port;

enum { XDP_TAG_INSNS = 64 }; /* maximum for VLAN tags */

/* Where our program is; program/program.c. */
struct xdp_prog {
	struct xdp_prog_bpf *skeleton; /* NULL: not our own program */
	struct bpf_object *user;       /* from the option prog */
	char *log;                     /* of the verifier */
	struct bpf_object *object;     /* skeleton's or user; its parts: */
	struct bpf_program *program;
	struct bpf_map *map;
	void *dispatched; /* struct xdp_program *, with libxdp's dispatcher */
	char name[BPF_OBJ_NAME_LEN];
	int fd;
	int map_fd;
	int attached_fd; /* the attached program: this one, or one with rules */
	int taken_fd;    /* attached, of another process; -1: none */
	int copy_fd;     /* with a filter, or bound to the device; -1: none */
	uint32_t n_steered;    /* queues whose sockets are in the map */
	bool is_foreign;       /* option map: others have attached it */
	char unbound_why[128]; /* why the kernel refused them; "": it did not */
};

/* program.c */
/* -ERANGE: the MTU, here or at the peer, needs a program with frags. */
int mri_xdp_prog_open(struct xdp_port *port, bool has_frags,
		      struct mr_reason *reterr_reason);
/* Make the program that another process attached the port's, with its map of
 * sockets; has_rules: it stands in for the port's own. The port then owns
 * prog_fd, also on failure. */
int mri_xdp_prog_take(struct xdp_port *port, int prog_fd, int map_fd,
		      bool has_rules, struct mr_reason *reterr_reason);
int mri_xdp_prog_steer(struct xdp_port *port, struct mr_reason *reterr_reason);
void mri_xdp_prog_unsteer(struct xdp_port *port);
void mri_xdp_prog_close(struct xdp_port *port);
/* Whether somebody else detached it: the interface has another one or none. */
bool mri_xdp_prog_is_detached(const struct xdp_port *port);
/* Replace the attached program; -EPERM: it is not old_fd's; -ENOLINK: the
 * interface is gone. */
int mri_xdp_prog_replace(struct xdp_port *port, int old_fd, int new_fd);
/* Detach the program from an interface that is no longer the port's. */
void mri_xdp_prog_detach(struct xdp_port *port);
/* Attach it again, for a driver that does not run it on new channels. */
int mri_xdp_prog_spread(struct xdp_port *port, struct mr_reason *reterr_reason);
/* Say why a program was not loaded. */
int mri_xdp_refuse_load(const struct xdp_port *port, int err, bool has_rules,
			struct mr_reason *reterr_reason);

/* user.c */
/* Open the program of the option prog and its map, without loading them. */
int mri_xdp_user_open(struct xdp_port *port, bool has_frags,
		      struct mr_reason *reterr_reason);
/* The last line of a verifier's log before the statistics. */
const char *mri_xdp_verdict(char *log);
/* Report why the program was not loaded. */
int mri_xdp_refuse_user_prog(const struct xdp_port *port, int err,
			     struct mr_reason *reterr_reason);
void mri_xdp_user_close(struct xdp_port *port);
/* Open the map of the option map, without a program. */
int mri_xdp_map_open(struct xdp_port *port, bool has_frags,
		     struct mr_reason *reterr_reason);

/* owner.c */
/* Get a program's name, or "". Returns whether it no longer exists. */
bool mri_xdp_prog_name(uint32_t prog_id, char name[BPF_OBJ_NAME_LEN]);
/* -EBUSY because of program dev.xdp_prog_id; why: further text, or "". */
int mri_xdp_refuse_occupied(const struct xdp_port *port, const char *why,
			    struct mr_reason *reterr_reason);

/* quiet.c */
/* Between these calls, libbpf and libxdp print nothing for this thread. The
 * calls nest. */
void mri_xdp_quiet_begin(void);
void mri_xdp_quiet_end(void);

/* bound.c */
/* Find the kfuncs that the device implements and the port wants. */
void mri_xdp_find_kfuncs(struct xdp_port *port);
/* Make a program of n instructions call them. Returns the new number. */
size_t mri_xdp_bind_calls(const struct xdp_port *port, struct bpf_insn *insns,
			  size_t n);
/* Code in front of a filter, which inserts the tag. Returns how many
 * instructions. */
uint32_t mri_xdp_add_tag_in(const struct xdp_port *port,
			    struct bpf_insn *insns);
/* Code behind all n instructions, which removes the tag from frames that the
 * filter (the first n_filter) passes to the kernel. Returns the new number. */
size_t mri_xdp_add_tag_out(const struct xdp_port *port, struct bpf_insn *insns,
			   size_t n_filter, size_t n);
/* Why the program of a port is not bound to the device. */
const char *mri_xdp_unbound_cause(const struct xdp_port *port);
/* Whether such tags are lost; if so, why, and the remedy. */
bool mri_xdp_loses_tags(const struct xdp_port *port, char *ret_why,
			size_t n_bytes);

/* rule_set.c */
extern const struct mr_rules_ops mri_xdp_rules_ops;
int mri_xdp_rules_caps(const struct xdp_port *port,
		       struct mr_offload_caps *caps,
		       struct mr_reason *reterr_reason);
/* Add what the rules did with frames of the queue. */
void mri_xdp_rules_stats(const struct mr_rxq *base, struct mr_rx_stats *stats);

#endif
