/* SPDX-License-Identifier: BSD-3-Clause */
/* What a port changes on its interface, and the record of it. */
#ifndef XDP_DEVICE_SETTINGS_H
#define XDP_DEVICE_SETTINGS_H

#include <stdbool.h>

#include <millrace/driver.h>

struct xdp_port;

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
	/* rss.c */
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
	uint32_t n;
	bool is_refused; /* a change could not be recorded, which was logged */
	char path[64];
	struct xdp_change changes[XDP_MAX_CHANGES];
};

/* record.c */
/* A number that identifies the caller's network namespace. */
int mri_xdp_netns_cookie(uint64_t *ret_cookie);
/*
 * Restore what a killed process had changed. 1: there was a record, and the
 * interface may have changed; 0: there was none; -EBUSY: the process lives.
 */
int mri_xdp_record_open(struct xdp_port *port, struct mr_reason *reterr_reason);
/* For -EBUSY of mri_xdp_record_open(), -EALREADY of mri_xdp_change(). */
int mri_xdp_refuse_shared(const struct xdp_port *port,
			  struct mr_reason *reterr_reason);
/* Set something and record it; -EALREADY: another has the record; -errno. */
int mri_xdp_change(struct xdp_port *port, enum xdp_setting setting, uint32_t id,
		   uint64_t value);
/* Whether a setting is one that the port has made. */
bool mri_xdp_has_changed(const struct xdp_port *port, enum xdp_setting setting,
			 uint32_t id);
/* Move the file's lock to an fd that cannot write it, for the client; or -1.
 */
int mri_xdp_record_share(struct xdp_port *port);
/* Restore the settings from this one on, unless others changed them since. */
void mri_xdp_record_undo(struct xdp_port *port, enum xdp_setting first);

/* settings.c */
extern const char *const mri_xdp_setting_names[XDP_N_SETTINGS];
/* Read or write the setting of a change: 0 or -errno; -ENOENT: it is gone. */
int mri_xdp_setting(const struct xdp_port *port,
		    const struct xdp_change *change, bool is_write,
		    uint64_t *value);
/* What the options ask for. */
int mri_xdp_settings_open(struct xdp_port *port,
			  struct mr_reason *reterr_reason);
/* Restore all that was set, at open or later. */
void mri_xdp_settings_close(struct xdp_port *port);
/* Of struct xdp_lessor, for a process that has the capabilities. Promiscuity,
 * multicast and the MAC filter end with the process. */
int mri_xdp_set(struct xdp_port *port, enum xdp_setting setting, uint64_t value,
		struct mr_reason *reterr_reason);
int mri_xdp_set_mac_filter(struct mr_port *base, const uint8_t (*macs)[6],
			   uint32_t n, struct mr_reason *reterr_reason);
/* Set a flag of the interface itself, which is recorded. */
int mri_xdp_set_flag(struct xdp_port *port, enum xdp_setting setting,
		     bool is_on, struct mr_reason *reterr_reason);

/* rss.c */
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

#endif
