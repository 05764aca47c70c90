/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside of the AF_XDP driver; README.md lists its files.
 */
#ifndef XDP_XDP_H
#define XDP_XDP_H

#include <net/if.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include <linux/bpf.h>

#include <bpf/libbpf.h>

#include <millrace/driver.h>
#include <millrace/experimental/driver_offload.h>

#include "device/netdev.h"
#include "program/rx_meta.h"
#include "socket/times.h"
#include "uapi.h"
#include "socket/ring.h"

_Static_assert((int)XSK_PKT_CONTD == (int)MR_FRAME_MORE,
	       "an rx descriptor is a struct mr_frame");

/* What lets a user run a program without root; the last is for UMEMs. */
#define XDP_SETCAP                                                             \
	"setcap cap_net_raw,cap_net_admin,cap_bpf,cap_perfmon,cap_ipc_lock+ep" \
	" on the program, or CapabilityBoundingSet= and AmbientCapabilities= " \
	"of its unit"

enum {
	XDP_MAX_QUEUES = 64, /* of a port */
	XDP_MIN_FRAME_BYTES = 14, /* an Ethernet header */
	/* Linux devices take an MTU, an Ethernet header and a VLAN tag. */
	XDP_LINK_BYTES = 14 + 4,
	/* Postings are counted by the smallest page of any pool. */
	XDP_POSTING_SHIFT = 11,
	/* ETH_GSTRING_LEN, and an end, which the kernel may leave out. */
	XDP_STAT_NAME_BYTES = 32 + 1,
	/*
	 * Least time between two busy polls that find nothing: a NAPI that is
	 * polled without a pause starves what else it has to do.
	 */
	XDP_BUSY_INTERVAL_NS = 5000,
};

enum { XDP_TAG_INSNS = 64 }; /* maximum for VLAN tags */

struct xdp_port;

struct xdp_rxq {
	_Alignas(64) struct mr_rxq base;
	/* Hot. */
	struct xring rx;
	struct xring fill;
	struct xdp_port *port;
	uint8_t *posted; /* per chunk: with the kernel, or in a ring */
	uint32_t chunk_shift;
	uint32_t n_bufs; /* always with us and the kernel: see socket/rx.c */
	uint32_t tailroom_bytes;
	uint32_t meta_magic; /* of metadata in front of frames; 0: none */
	bool has_partial_csums;
	bool in_long_frame; /* its first part was dropped, the rest follows */
	bool is_busy;       /* our calls run the device's NAPI */
	int fd;
	/* Idle. */
	uint32_t n_idle_polls;
	uint64_t idle_since_ns;
	uint64_t polled_ns; /* the end of the last busy poll */
};

/* The place in postings[] of an entry that begins at addr. */
static inline uint64_t xdp_posting(uint64_t addr)
{
	return addr >> XDP_POSTING_SHIFT;
}

struct xdp_txq {
	_Alignas(64) struct mr_txq base;
	/* Hot. */
	struct xring tx;
	struct xring comp;
	struct xdp_port *port;
	uint8_t *postings; /* per 2 KiB: entries posted and not completed */
	uint64_t *ends;    /* bit per place of tx: the entry ends a frame */
	uint64_t n_registered_bytes; /* entries lie in [0, that) */
	uint32_t chunk_shift;
	uint32_t chunk_mask;
	uint32_t n_front_bytes; /* in its chunk, before each entry */
	uint32_t n_outstanding; /* entries posted and not completed */
	uint32_t n_posted;      /* running number of entries, for ends */
	uint32_t n_reaped;
	uint32_t n_lost;      /* frames the device lost, not yet reaped */
	uint32_t n_woken_for; /* of tx, when a zero-copy driver was woken */
	uint32_t n_patient;   /* bursts since then that did not wake it */
	uint32_t n_left_before; /* in the ring, when it was */
	uint64_t woken_ns;    /* when that was */
	bool is_busy;         /* busy polling works */
	uint32_t max_segs;    /* descriptors of a frame */
	bool has_csum;   /* the kernel finishes partial sums */
	struct xdp_times times;
	bool is_stalled; /* the last kick moved nothing and will not */
	int fd;
	uint64_t n_told; /* completed, as in the last statistics; atomic */
};

/* Whether a frame may have n entries in that place, and all are counted. */
static inline bool xdp_can_post(const struct xdp_txq *txq, uint64_t addr,
				uint32_t n)
{
	return txq->postings[xdp_posting(addr)] + n <= UINT8_MAX;
}

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
	int link_fd;
	int map_fd;
	int attached_fd; /* the attached program: this one, or one with rules */
	int copy_fd; /* with a filter, or bound to the device; -1: none */
	uint32_t n_steered; /* queues whose sockets are in the map */
	bool is_foreign;    /* option map: others have attached it */
	uint32_t kfuncs[XDP_N_KFUNCS]; /* that it calls: ids in BTF, or 0 */
	char unbound_why[128]; /* why the kernel refused them; "": it did not */
	uint32_t meta_magic;           /* 0: it writes no metadata */
	bool is_native, has_frags;
};

/* What a port may change on its interface, to be restored. */
enum xdp_setting {
	XDP_SETTING_MTU,
	XDP_SETTING_MAC, /* 6 bytes in memory order */
	XDP_SETTING_UP,
	/* By flags of the interface; without broker, by packet sockets. */
	XDP_SETTING_PROMISC,
	XDP_SETTING_ALLMULTI,
	/* napi_defer_hard_irqs and gro_flush_timeout. */
	XDP_SETTING_DEFER,
	XDP_SETTING_FLUSH,
	/* device/rss.c */
	XDP_SETTING_RSS_FIELDS,
	XDP_SETTING_RSS_KEY,
	XDP_SETTING_RSS_TABLE,
	XDP_SETTING_STEER,
	XDP_N_SETTINGS,
};

enum {
	XDP_MAX_NAPIS = 64,
	XDP_MAX_TABLE = 1024, /* entries of RSS */
	XDP_MAX_KEY = 64,     /* bytes */
	XDP_MAX_RULES = 64,   /* for steering */
	XDP_MAX_CHANGES = XDP_N_SETTINGS + 2 * XDP_MAX_NAPIS +
			  (XDP_MAX_TABLE + XDP_MAX_KEY) / 8 + XDP_MAX_RULES,
};

struct xdp_change {
	uint32_t setting;
	uint32_t id; /* of the NAPI, or part; 0: the whole interface */
	uint64_t before, since;
	bool is_undone;
};

struct xdp_record {
	int fd; /* of its file, locked; -1: there is none */
	uint32_t n;
	bool is_refused; /* a change could not be recorded, which was logged */
	char path[64];
	struct xdp_change changes[XDP_MAX_CHANGES];
};

enum xdp_mode { XDP_MODE_AUTO, XDP_MODE_ZC, XDP_MODE_COPY };
enum xdp_attach { XDP_ATTACH_AUTO, XDP_ATTACH_NATIVE, XDP_ATTACH_GENERIC };
enum xdp_switch { XDP_AUTO, XDP_ON, XDP_OFF };
enum xdp_rss { XDP_RSS_AUTO, XDP_RSS_SYMMETRIC, XDP_RSS_KEEP };

struct xdp_options {
	uint32_t mode, attach, sg, csum;
	uint32_t n_queues; /* 0: all channels */
	uint32_t first_queue;
	uint32_t ring_entries;
	uint32_t mtu_bytes; /* 0: as it is */
	uint32_t budget;    /* copy mode: descriptors per sendto(); 0: a ring */
	uint32_t busy;      /* busy poll budget; 0: off */
	bool promisc, force, partial, meta;
	uint32_t rss; /* from here on, not for the broker: lease/wire.h */
	uint32_t via; /* enum xdp_via */
	/* Valid during open; NULL: not given. */
	const char *prog, *map, *fds, *broker;
};

enum xdp_via { XDP_VIA_AUTO, XDP_VIA_BROKER, XDP_VIA_SELF };

/* Who performs privileged steps: docs/design/0012-broker.md. */
enum xdp_role {
	XDP_ALONE,
	XDP_CLIENT, /* of the broker, which performed them */
	XDP_SERVER, /* in the broker: it has no pool and no rings */
};

struct xdp_port {
	struct mr_port base;
	struct xdp_options options;
	enum xdp_role role;
	bool is_mute;  /* may not transmit: its sockets have no tx ring */
	int broker_fd; /* of a client: the connection; -1: none */
	struct xdp_netdev dev; /* as at open, except name and n_rx_channels */
	struct xdp_prog prog;
	struct xdp_filter *filter; /* NULL: it takes all frames */
	struct xdp_rules *rules; /* NULL: its program is not attached */
	struct xdp_rxq *rxqs;
	struct xdp_txq *txqs;
	uint32_t n_queues;                      /* sockets */
	uint32_t n_queues_max; /* after adding queues for new channels */
	/* The program's counter of frames on queues without a socket. */
	int unserved_fd; /* -1: none */
	const uint64_t *unserved; /* NULL: none */
	uint64_t n_unserved_before; /* before the port was open */
	uint64_t n_unserved_seen;   /* at the last check */
	bool has_named_unserved;
	int *fds;                               /* one socket per queue */
	int promisc_fd, allmulti_fd, filter_fd; /* -1: not set; end with us */
	struct xdp_record record;
	const struct mr_steer_rule *steering; /* while it is being added */
	bool is_pinned;
	int events_fd;   /* rtnetlink, perhaps of another network namespace */
	int channels_fd; /* ethtool netlink; -1: none */
	char opened_name[IFNAMSIZ]; /* of the interface, when it was opened */
	bool is_loss_known; /* is_gone was reported */
	uint32_t returned_ifindex; /* has opened_name again; 0: none */
	uint32_t n_polls; /* calls of mr_port_poll(), for rare checks */
	bool is_software;
	uint32_t tx_metadata_bytes; /* before each entry sent; 0: none */
	uint32_t max_segs;    /* descriptors of a frame, 1: no SG */
	uint32_t n_zc_queues; /* bound without copies: all, or none at all */
	/* Of the broker before Linux 6.4: the sockets are still to be bound. */
	bool is_unbound, is_unbound_zc, may_pass_unbound;
	uint64_t n_registered_bytes;
	uint32_t umem_headroom_bytes;
	struct {
		int fd; /* of a tap; -1: not open */
		uint64_t handed, lost;
	} kernel;
	uint32_t n_stats; /* the driver's own counters: ethtool -S */
	char (*stat_names)[XDP_STAT_NAME_BYTES];
	/* As base.info->mtu_bytes: atomic; mr_port_poll() writes. */
	uint32_t is_up;
	uint32_t is_gone;
	uint32_t is_detached; /* another program detached ours */
	uint64_t n_detached_at; /* frames received until then */
	uint32_t speed_mbps;
};

/* The longest frame that the interface takes now. */
static inline uint32_t xdp_max_bytes(const struct xdp_port *port)
{
	return __atomic_load_n(&port->base.info->mtu_bytes, __ATOMIC_RELAXED) +
	       XDP_LINK_BYTES;
}

/* Whether its program is loaded for its device alone. */
static inline bool xdp_is_bound(const struct xdp_port *port)
{
	return port->prog.kfuncs[XDP_KFUNC_TIME] != 0 ||
	       port->prog.kfuncs[XDP_KFUNC_HASH] != 0 ||
	       port->prog.kfuncs[XDP_KFUNC_TAG] != 0;
}

static inline struct xdp_rxq *xdp_rxq_of(struct mr_rxq *base)
{
	return (struct xdp_rxq *)base;
}

static inline struct xdp_txq *xdp_txq_of(struct mr_txq *base)
{
	return (struct xdp_txq *)base;
}

/* socket/rx.c */
mr_rx_burst_fn mri_xdp_rx_burst;
int mri_xdp_rx_arm(struct mr_queue *queue);
/* Give the kernel its n_bufs buffers, -ENOMEM if the pool has not as many. */
int mri_xdp_rx_fill(struct xdp_rxq *rxq);
/* Take back what the kernel has; its socket is closed, the device done. */
void mri_xdp_rx_take_back(struct xdp_rxq *rxq);

/* socket/tx.c */
mr_tx_burst_fn mri_xdp_tx_burst;
int mri_xdp_tx_arm(struct mr_queue *queue);
/*
 * Wait until the kernel has completed all that it took from the ring, or until
 * deadline_ns of the context's clock. Returns how many buffers it still holds.
 */
uint32_t mri_xdp_tx_wait(struct xdp_txq *txq, uint64_t deadline_ns);
void mri_xdp_tx_take_back(struct xdp_txq *txq);

/* socket/meta.c */
/* Set the metadata of n received entries. */
void mri_xdp_read_meta(const struct xdp_rxq *rxq, const struct mr_frame *frames,
		       struct mr_meta *ret_meta, uint32_t n);
/* Which metadata the port gets: MR_OFFLOAD_*. */
uint32_t mri_xdp_meta_offloads(const struct xdp_port *port);
/* Whether some requested metadata is missing; if so, why. */
bool mri_xdp_lacks_meta(const struct xdp_port *port, char *ret_why,
			size_t n_bytes);

/* socket/csum.c */
/* Mark those of n entries that begin a frame with a partial sum; how many. */
uint32_t mri_xdp_csum_mark(const struct mr_port *port, struct mr_frame *frames,
			   uint32_t n);
/* Ask the kernel for the partial sum of a frame of writable entries, or finish
 * it here. */
void mri_xdp_csum_send(struct xdp_txq *txq, const struct mr_frame *frames,
		       const struct mr_meta *meta, struct xsk_tx_meta *request);

/* socket/copy.c */
/*
 * Make a frame that the kernel would refuse into one that it takes: split
 * entries at chunk edges where that is enough, else copy. Consumes the n
 * entries at in, whatever it returns: the entries at out, 0 if the frame was
 * dropped, and counted.
 */
uint32_t mri_xdp_reshape(struct xdp_txq *txq, struct mr_cache *cache,
			 const struct mr_frame *in, uint32_t n,
			 struct mr_frame out[MR_MAX_SEGS]);

/* xdp.c */
/*
 * What needs capabilities: settings, program, sockets, as the options ask. On
 * failure, mri_xdp_release() undoes what was done.
 */
int mri_xdp_take(struct xdp_port *port, struct mr_reason *reterr_reason);
void mri_xdp_release(struct xdp_port *port);
/* Check the queues that the options ask for, and fill in how many. */
int mri_xdp_choose_queues(const struct xdp_netdev *dev, struct xdp_options *o,
			  struct mr_reason *reterr_reason);
bool mri_xdp_has_partial_csums(const struct xdp_port *port);

/* socket/bind.c */
/* Whether frames have several buffers; -EINVAL, -ENOTSUP: not with this pool */
int mri_xdp_choose_sg(const struct xdp_port *port, bool *ret_has_sg,
		      struct mr_reason *reterr_reason);
/* What requires several buffers per frame, for a message; with has_sg. */
const char *mri_xdp_sg_cause(const struct xdp_port *port);
/* Longest MTU in the mode that was reached; the device may take less. */
uint32_t mri_xdp_max_mtu(const struct xdp_port *port);
int mri_xdp_climb(struct xdp_port *port, bool has_sg,
		  struct mr_reason *reterr_reason);

/* socket/queues.c */
int mri_xdp_queues_alloc(struct xdp_port *port, struct mr_reason *reason);
void mri_xdp_queues_free(struct xdp_port *port);
int mri_xdp_add_queues(struct mr_port *base, uint32_t n,
		       struct mr_reason *reterr_reason);

/* socket/umem.c */
/* One way to bind; several are tried. */
struct xdp_bind_mode {
	bool is_zc;
	uint32_t max_segs; /* 1: without SG */
};
/*
 * Sockets, registration, rings, buffers and bind of all queues. On failure
 * nothing is left; *ret_is_final tells that no other bind mode would help.
 */
int mri_xdp_sockets_open(struct xdp_port *port, struct xdp_bind_mode bind_mode,
			 bool *ret_is_final, struct mr_reason *reterr_reason);
/* Close them, wait for the device, take back what they held. */
void mri_xdp_sockets_close(struct xdp_port *port);
/* The same for queue i alone: not the first, whose memory the others share. */
int mri_xdp_socket_open(struct xdp_port *port, uint32_t i,
			struct xdp_bind_mode bind_mode, bool *ret_is_final,
			struct mr_reason *reterr_reason);
void mri_xdp_socket_close(struct xdp_port *port, uint32_t i);
/* The first step of opening it: a socket with its memory and rings. */
int mri_xdp_socket_make(struct xdp_port *port, uint32_t i, bool is_zc,
			struct mr_reason *reason);
/* Wait until closed zero-copy sockets are released. */
void mri_xdp_sockets_wait(const struct xdp_port *port);

/* lease/unbound.c */
/* If rings of bound sockets cannot be mapped, replace the broker's sockets by
 * unbound ones, which its client can map. */
int mri_xdp_unbound_open(struct xdp_port *port, struct mr_reason *reason);

/* program/program.c */
/* -ERANGE: the MTU, here or at the peer, needs a program with frags. */
int mri_xdp_prog_open(struct xdp_port *port, bool has_frags,
		      struct mr_reason *reterr_reason);
int mri_xdp_prog_steer(struct xdp_port *port, struct mr_reason *reterr_reason);
void mri_xdp_prog_unsteer(struct xdp_port *port);
void mri_xdp_prog_close(struct xdp_port *port);
/* Whether somebody else took it off the interface, which has another or none. */
bool mri_xdp_prog_is_detached(const struct xdp_port *port);
/* Replace the attached program; -EPERM: it is not old_fd's; -ENOLINK: the
 * interface is gone. */
int mri_xdp_prog_replace(struct xdp_port *port, int old_fd, int new_fd);
/* Detach the program from an interface that is no longer the port's. */
void mri_xdp_prog_detach(struct xdp_port *port);
/* Attach it again, for a driver that does not run it on new channels. */
int mri_xdp_prog_spread(struct xdp_port *port, struct mr_reason *reterr_reason);
/* Why a program was not loaded, as a reason. */
int mri_xdp_prog_refuse(const struct xdp_port *port, int err, bool has_rules,
			struct mr_reason *reterr_reason);
/* program/user.c */
/* Open the program of the option prog and its map, without loading them. */
int mri_xdp_user_open(struct xdp_port *port, bool has_frags,
		      struct mr_reason *reterr_reason);
/* The last line of a verifier's log before the statistics. */
const char *mri_xdp_verdict(char *log);
/* Report why the program was not loaded. */
int mri_xdp_user_refuse(const struct xdp_port *port, int err,
			struct mr_reason *reterr_reason);
void mri_xdp_user_close(struct xdp_port *port);
/* Open the map of the option map, without a program. */
int mri_xdp_map_open(struct xdp_port *port, bool has_frags,
		     struct mr_reason *reterr_reason);

/* program/owner.c */
/* Get a program's name, or "". Returns whether it no longer exists. */
bool mri_xdp_prog_name(uint32_t prog_id, char name[BPF_OBJ_NAME_LEN]);
/* -EBUSY because of program dev.xdp_prog_id; why: further text, or "". */
int mri_xdp_refuse_attached(const struct xdp_port *port, const char *why,
			    struct mr_reason *reterr_reason);

/* program/quiet.c */
/* Between these calls, libbpf and libxdp print nothing for this thread. The
 * calls nest. */
void mri_xdp_quiet_begin(void);
void mri_xdp_quiet_end(void);

/* program/bound.c */
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
/* Whether such tags are lost; if so, why, and the remedy. */
bool mri_xdp_loses_tags(const struct xdp_port *port, char *ret_why,
			size_t n_bytes);

/* device/genl.c */
/* Most descriptors of a frame in zero-copy mode; 1 if the driver has no SG. */
uint32_t mri_xdp_zc_max_segs(uint32_t ifindex);
/* Ids of the interface's NAPIs: how many, or -errno. */
int mri_xdp_napi_list(uint32_t ifindex, uint32_t ret_ids[XDP_MAX_NAPIS]);
/* The NAPI of an rx queue; 0: the driver does not report it. */
uint32_t mri_xdp_queue_napi(uint32_t ifindex, uint32_t queue);
/* As mri_xdp_setting(), of a NAPI; -EOPNOTSUPP: before Linux 6.13. */
int mri_xdp_napi_setting(uint32_t id, enum xdp_setting setting, bool is_write,
			 uint64_t *value);

/* The kernel's NETDEV_XDP_ACT_*: 0, -ENOENT before Linux 6.3, or -errno. */
int mri_xdp_features(uint32_t ifindex, uint64_t *ret_features);
/* Its NETDEV_XDP_RX_METADATA_*; 0 before Linux 6.7. */
uint64_t mri_xdp_rx_metadata(uint32_t ifindex);
/* Its NETDEV_XSK_FLAGS_*: 0, or -ENOENT before Linux 6.8. */
int mri_xdp_tx_metadata(uint32_t ifindex, uint64_t *ret_features);
/* Non-blocking fds that become readable when the features of any interface, or
 * its ethtool settings, change; or -errno. */
int mri_xdp_features_open(void);
int mri_xdp_channels_open(void);

/* device/to_kernel.c */
int mri_xdp_open_kernel(struct mr_port *base, struct mr_reason *reterr_reason);
bool mri_xdp_to_kernel(struct mr_port *base, const struct mr_frame *frames,
		       uint32_t n);
/* Its counters. Returns how many there are. */
uint32_t mri_xdp_kernel_stats(const struct xdp_port *port,
			      struct mr_named_count *ret_counts, uint32_t n);
void mri_xdp_kernel_close(struct xdp_port *port);

/* program/rule_set.c */
extern const struct mr_rules_ops mri_xdp_rules_ops;
/* Add what the rules did with frames of the queue. */
void mri_xdp_rules_stats(const struct mr_rxq *base, struct mr_rx_stats *stats);

/* socket/busy.c */
/* Start busy polling on all queues, if the options ask for it and it helps. */
void mri_xdp_busy_open(struct xdp_port *port);
/* Ask for busy polling of a socket. False: there is none. */
bool mri_xdp_busy_poll(const struct xdp_port *port, int fd);

/* device/events.c */
/* rtnetlink events; an fd or -errno. */
int mri_xdp_events_open(void);
/* Make port->base.fd readable at each event. */
int mri_xdp_events_watch(struct xdp_port *port, struct mr_reason *reason);
void mri_xdp_events_close(struct xdp_port *port);
int mri_xdp_events_poll(struct xdp_port *port);
/* Read how many channels there are. */
void mri_xdp_take_channels(struct xdp_port *port);

/* device/master.c */
/* 0; -ENOTSUP: it is a bond, bridge, VLAN or the like, and the reason names the
 * underlying devices; or -errno. */
int mri_xdp_refuse_master(const struct xdp_netdev *dev,
			  struct mr_reason *reterr_reason);

/* device/record.c */
/* What tells the caller's network namespace from all others. */
int mri_xdp_netns_cookie(uint64_t *ret_cookie);
/*
 * Restore what a killed process had changed. 1: there was a record, and the
 * interface may have changed; 0: there was none; -EBUSY: the process lives.
 */
int mri_xdp_record_open(struct xdp_port *port, struct mr_reason *reterr_reason);
/* The reason for -EBUSY of the one, and for -EALREADY of mri_xdp_change(). */
int mri_xdp_record_refuse(const struct xdp_port *port,
			  struct mr_reason *reterr_reason);
/* Set something and record it; -EALREADY: another has the record; -errno. */
int mri_xdp_change(struct xdp_port *port, enum xdp_setting setting, uint32_t id,
		   uint64_t value);
/* Whether a setting is one that the port has made. */
bool mri_xdp_has_changed(const struct xdp_port *port, enum xdp_setting setting,
			 uint32_t id);
/* Move the file's lock to an fd that cannot write it, for the client; or -1 */
int mri_xdp_record_share(struct xdp_port *port);
/* Restore the settings from this one on, unless others changed them since. */
void mri_xdp_record_undo(struct xdp_port *port, enum xdp_setting first);

/* device/rss.c */
/* As mri_xdp_setting(), for RSS and steering. */
int mri_xdp_queue_setting(const struct xdp_port *port, const char *name,
			  const struct xdp_change *change, bool is_write,
			  uint64_t *value);
/* What the option rss asks for. */
int mri_xdp_rss_open(struct xdp_port *port, struct mr_reason *reterr_reason);
int mri_xdp_set_rss(struct mr_port *base, const struct mr_rss_config *config,
		    struct mr_reason *reterr_reason);
int mri_xdp_steer(struct mr_port *base, const struct mr_steer_rule *rule,
		  uint32_t *ret_id, struct mr_reason *reterr_reason);
int mri_xdp_unsteer(struct mr_port *base, uint32_t id,
		    struct mr_reason *reterr_reason);

/* device/settings.c */
extern const char *const mri_xdp_setting_names[XDP_N_SETTINGS];
/* Read or write the setting of a change: 0 or -errno; -ENOENT: it is gone. */
int mri_xdp_setting(const struct xdp_port *port,
		    const struct xdp_change *change, bool is_write,
		    uint64_t *value);
/* What the options ask for. */
int mri_xdp_settings_open(struct xdp_port *port,
			  struct mr_reason *reterr_reason);
/* Give everything back that was set, at open or later. */
void mri_xdp_settings_close(struct xdp_port *port);
int mri_xdp_set_promisc(struct mr_port *base, bool on,
			struct mr_reason *reterr_reason);
int mri_xdp_set_allmulti(struct mr_port *base, bool on,
			 struct mr_reason *reterr_reason);
int mri_xdp_set_mtu(struct mr_port *base, uint32_t mtu_bytes,
		    struct mr_reason *reterr_reason);
int mri_xdp_set_mac(struct mr_port *base, const uint8_t mac[6],
		    struct mr_reason *reterr_reason);
int mri_xdp_set_mac_filter(struct mr_port *base, const uint8_t (*macs)[6],
			   uint32_t n, struct mr_reason *reterr_reason);

/* device/stats.c */
/* Read the counter of unserved_fd from now on. */
int mri_xdp_unserved_open(struct xdp_port *port, struct mr_reason *reason);
/* The same for the map of a program. It outlives the program; one that replaces
 * the program may use the same map. */
int mri_xdp_unserved_keep(struct xdp_port *port, int map_fd,
			  struct mr_reason *reason);
/* Frames that were dropped on queues without a socket. */
uint64_t mri_xdp_n_unserved(const struct xdp_port *port);
/* Reads the names of the driver's counters: they outlive a rename. */
int mri_xdp_stats_open(struct xdp_port *port, struct mr_reason *reterr_reason);
void mri_xdp_stats_close(struct xdp_port *port);
void mri_xdp_rxq_stats(const struct mr_rxq *base, struct mr_rx_stats *stats);
void mri_xdp_txq_stats(const struct mr_txq *base, struct mr_tx_stats *stats);
uint32_t mri_xdp_device_drops(const struct mr_port *base,
			      struct mr_named_count *ret_counts, uint32_t n);
uint32_t mri_xdp_device_stats(const struct mr_port *base,
			      struct mr_named_count *ret_counts, uint32_t n);

#endif
