/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port's filter: from its options to the kernel.
 *
 *     frame --> filter --match--> the port's program, or that with rules
 *                  |
 *                  no match: counted, to the kernel
 *
 * The filter's instructions precede those of a loaded program, in which map fds
 * and calls are resolved, and both are loaded as one program.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <linux/filter.h>

#include "program/filter.h"
#include "xdp.h"

enum {
	LOG_BYTES = 1 << 20,
	DEV_BOUND_ONLY = 1 << 6, /* BPF_F_XDP_DEV_BOUND_ONLY, Linux 6.3 */
};

struct text {
	char bytes[XDP_FILTER_TEXT_BYTES];
	size_t n; /* includes text that did not fit */
};

static void append_text(struct text *text, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void append_text(struct text *text, const char *format, ...)
{
	const size_t n =
		text->n < sizeof(text->bytes) ? text->n : sizeof(text->bytes);
	va_list args;

	va_start(args, format);
	text->n += (size_t)vsnprintf(text->bytes + n, sizeof(text->bytes) - n,
				     format, args);
	va_end(args);
}

static bool is_number(const char *word, unsigned long min, unsigned long max)
{
	const size_t n = strspn(word, "0123456789abcdefABCDEFx");
	char *end;
	unsigned long value;

	if (n == 0 || word[n] != '\0' || word[0] > '9')
		return false;
	value = strtoul(word, &end, 0);
	return *end == '\0' && value >= min && value <= max;
}

static bool add_vlan(struct text *text, char *word)
{
	append_text(text, "ether[14:2] & 0xfff = %s", word);
	return is_number(word, 0, 4095);
}

static bool add_ethertype(struct text *text, char *word)
{
	append_text(text, "ether proto %s", word);
	return is_number(word, 0x600, 0xffff);
}

/* An Ethernet, IPv4 or IPv6 address; IP also with a prefix length. */
static bool add_dst(struct text *text, char *word)
{
	uint32_t n_colons = 0;

	for (const char *c = word; *c != '\0'; c++)
		n_colons += *c == ':';
	append_text(text, "%s %s",
		    n_colons == 5 && strstr(word, "::") == NULL ? "ether dst" :
								  "dst net",
		    word);
	return word[0] != '\0' &&
	       word[strspn(word, "0123456789abcdefABCDEF.:/")] == '\0';
}

/* PORT[-PORT][/udp|/tcp|/sctp] */
static bool add_port(struct text *text, char *word)
{
	const char *protocol = "";
	char *slash = strchr(word, '/'), *last;

	if (slash != NULL) {
		*slash = '\0';
		protocol = slash + 1;
		if (strcmp(protocol, "udp") != 0 &&
		    strcmp(protocol, "tcp") != 0 &&
		    strcmp(protocol, "sctp") != 0)
			return false;
	}
	last = strchr(word, '-');
	append_text(text, "%s port%s %s", protocol, last != NULL ? "range" : "",
		    word);
	if (last == NULL)
		return is_number(word, 0, 65535);
	*last = '\0';
	return is_number(word, 0, 65535) && is_number(last + 1, 0, 65535);
}

/*
 * Keys for common filters. A value is a list A+B+..., optionally after "not ".
 * In an expression, "vlan" shifts the offsets of everything after it, so it
 * comes first, or last if negated.
 */
static const struct shorthand {
	const char *key;
	const char *begin, *end; /* around the list */
	bool (*add)(struct text *text, char *word);
	const char *values;
} shorthands[] = {
	{ "vlan", "vlan and (", ")", add_vlan, "0 to 4095" },
	{ "ethertype", "", "", add_ethertype, "0x600 to 0xffff" },
	{ "dst", "", "", add_dst, "an Ethernet or IP address, or NET/BITS" },
	{ "ports", "", "", add_port, "PORT or PORT-PORT, with /udp or /tcp" },
};

enum { VLAN, ETHERTYPE, DST, PORTS, N_SHORTHANDS };

/* Non-first fragments, which have no ports. */
static const char fragments[] = "ip[6:2] & 0x1fff != 0 or "
				"(ip6[6] = 44 and ip6[42:2] & 0xfff8 != 0)";

static void add_and(struct text *text)
{
	if (text->n > 0 && text->n < sizeof(text->bytes) &&
	    text->bytes[text->n - 1] != '(')
		append_text(text, " and ");
}

static bool is_negative(const struct mr_spec *spec, uint32_t i)
{
	const char *value = mr_spec_get(spec, shorthands[i].key);

	return value != NULL && strncmp(value, "not ", 4) == 0;
}

static int add_shorthand(struct text *text, const struct mr_spec *spec,
			 uint32_t i, struct mr_reason *reason)
{
	const struct shorthand *s = &shorthands[i];
	const char *value = mr_spec_get(spec, s->key), *sep = "";
	char list[XDP_FILTER_TEXT_BYTES], *rest = list, *word;

	if (value == NULL)
		return 0;
	snprintf(list, sizeof(list), "%s",
		 value + (is_negative(spec, i) ? 4 : 0));
	add_and(text);
	append_text(text, "%s(%s", is_negative(spec, i) ? "not " : "",
		    s->begin);
	while ((word = strsep(&rest, "+")) != NULL) {
		append_text(text, "%s", sep);
		sep = " or ";
		if (!s->add(text, word))
			return mr_fail(reason, -EINVAL,
				       "xdp: option %s: '%.80s': each item of "
				       "the list (with + between) must be %s",
				       s->key, value, s->values);
	}
	append_text(text, "%s)", s->end);
	return 0;
}

static int add_keys(struct text *text, const struct mr_spec *spec,
		    bool has_fragments, struct mr_reason *reason)
{
	const char *expression = mr_spec_get(spec, "filter");
	int err = 0;

	if (!is_negative(spec, VLAN))
		err = add_shorthand(text, spec, VLAN, reason);
	for (uint32_t i = ETHERTYPE; i < PORTS && err == 0; i++)
		err = add_shorthand(text, spec, i, reason);
	if (has_fragments) {
		add_and(text);
		append_text(text, "((");
	}
	if (expression != NULL) {
		add_and(text);
		append_text(text, "(%s)", expression);
	}
	if (err == 0)
		err = add_shorthand(text, spec, PORTS, reason);
	if (has_fragments)
		append_text(text, ") or %s)", fragments);
	if (err == 0 && is_negative(spec, VLAN))
		err = add_shorthand(text, spec, VLAN, reason);
	return err;
}

static int make_expression(struct text *text, const struct mr_spec *spec,
			   struct mr_reason *reason)
{
	static const char *const words[] = { "kernel", "port", NULL };
	uint32_t has_fragments;
	int err = mr_spec_get_word(spec, "fragments", words, &has_fragments,
				   reason);

	if (err == 0 && mr_spec_get(spec, "fragments") != NULL &&
	    mr_spec_get(spec, "filter") == NULL &&
	    mr_spec_get(spec, "ports") == NULL)
		return mr_fail(reason, -EINVAL,
			       "xdp: option fragments needs 'filter' or "
			       "'ports', which do not match all fragments");
	if (err == 0)
		err = add_keys(text, spec, has_fragments, reason);
	if (err == 0 && text->n >= sizeof(text->bytes))
		err = mr_fail(reason, -EINVAL,
			      "xdp: the filter has more than %d characters",
			      XDP_FILTER_TEXT_BYTES - 1);
	return err;
}

static int compile_filter(struct xdp_port *port, const char *expression,
			  struct mr_reason *reterr_reason)
{
	const struct xdp_filter_count count = { .n_queues = 1 };
	uint32_t n;
	const int err = mri_xdp_filter_compile(
		port->base.ctx, port->base.info->name, expression,
		&port->filter, reterr_reason);

	if (err < 0)
		return err;
	if (mri_xdp_filter_translate(&port->filter, &count, NULL, &n) < 0)
		return mr_fail(reterr_reason, -ENOTSUP,
			       "%s: filter '%.160s': it matches no frame, is "
			       "too long for a program, or loops: omit "
			       "'protochain'",
			       port->base.info->name, expression);
	return 0;
}

int mri_xdp_filter_read(struct xdp_port *port, const struct mr_spec *spec,
			struct mr_reason *reterr_reason)
{
	const char *expression = mr_spec_get(spec, "filter");
	struct text text = { .n = 0 };
	int err = make_expression(&text, spec, reterr_reason);

	if (err < 0 || text.n == 0)
		return err;
	/* Alone first, so that an error quotes the user's own expression. */
	if (expression != NULL)
		err = mri_xdp_filter_compile(port->base.ctx,
					     port->base.info->name, expression,
					     &port->filter, reterr_reason);
	if (err < 0)
		return err;
	mri_xdp_filter_close(port);
	return compile_filter(port, text.bytes, reterr_reason);
}

int mri_xdp_filter_open(struct xdp_port *port, struct mr_reason *reterr_reason)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);
	struct xdp_lease *lease = &port->lease;

	if (port->filter.n == 0)
		return 0;
	lease->fds[XDP_LEASE_PASSED] = mr_fd_guard(bpf_map_create(
		BPF_MAP_TYPE_ARRAY, "millrace_passed", sizeof(uint32_t),
		lease->n_queues * XDP_FILTER_COUNT_BYTES, 1, &options));
	return lease->fds[XDP_LEASE_PASSED] >= 0 ?
		       0 :
		       mri_xdp_refuse_load(port, -errno, false, reterr_reason);
}

void mri_xdp_filter_close(struct xdp_port *port)
{
	mr_free(port->base.ctx, port->filter.insns);
	port->filter = (struct xdp_filter){ 0 };
}

static int load_insns(const struct xdp_port *port, const struct bpf_insn *insns,
		      size_t n, bool has_frags, char *log)
{
	const bool is_bound = xdp_is_bound(port);
	LIBBPF_OPTS(bpf_prog_load_opts, options,
		    .expected_attach_type = BPF_XDP,
		    .prog_flags = (has_frags ? BPF_F_XDP_HAS_FRAGS : 0) |
				  (is_bound ? DEV_BOUND_ONLY : 0),
		    .prog_ifindex = is_bound ? port->dev.ifindex : 0,
		    .log_level = log != NULL, .log_buf = log,
		    .log_size = log != NULL ? LOG_BYTES : 0);
	const int fd = bpf_prog_load(BPF_PROG_TYPE_XDP,
				     port->filter.n > 0 ? "millrace_filter" :
							  "millrace_tags",
				     "Dual BSD/GPL", insns, n, &options);

	return fd < 0 ? -errno : mr_fd_guard(fd);
}

static int refuse_program(const struct xdp_port *port,
			  const struct bpf_insn *insns, size_t n,
			  bool has_frags, int err, struct mr_reason *reason)
{
	char *log = mr_alloc(port->base.ctx, 0, LOG_BYTES);
	const char *line;

	err = mri_xdp_refuse_load(port, err, true, reason);
	if (err == -EPERM || log == NULL) { /* reason: a capability */
		mr_free(port->base.ctx, log);
		return err;
	}
	log[0] = '\0';
	mr_fd_close(load_insns(port, insns, n, has_frags, log));
	line = mri_xdp_verdict(log);
	if (line[0] != '\0')
		mr_fail(reason, err,
			"%s: the kernel's verifier refuses the program%s: "
			"%.200s",
			port->base.info->name,
			port->filter.n > 0 ? " with its filter" : "", line);
	mr_free(port->base.ctx, log);
	return err;
}

/* Emit the port's filter, if any. Returns the number of instructions. */
static uint32_t add_filter(const struct xdp_port *port, struct bpf_insn *insns)
{
	const struct xdp_filter_count count = {
		.map_fd = port->lease.fds[XDP_LEASE_PASSED],
		.first_queue = port->lease.first_queue,
		.n_queues = port->lease.n_queues,
	};
	uint32_t n_tag = 0, n;

	if (port->filter.n == 0)
		return 0;
	if (insns != NULL)
		n_tag = mri_xdp_add_tag_in(port, insns);
	(void)mri_xdp_filter_translate(&port->filter, &count,
				       insns == NULL ? NULL : insns + n_tag,
				       &n);
	return n_tag + n;
}

int mri_xdp_filter_load(const struct xdp_port *port,
			const struct bpf_program *program, bool has_frags,
			struct mr_reason *reterr_reason)
{
	const size_t n_program = bpf_program__insn_cnt(program);
	size_t n = add_filter(port, NULL), n_filter;
	struct bpf_insn *insns;
	int fd;

	insns = mr_alloc(port->base.ctx, 0,
			 (n + n_program + XDP_TAG_INSNS) * sizeof(*insns));
	if (insns == NULL)
		return mr_fail(reterr_reason, -ENOMEM,
			       "%s: no memory for the program",
			       port->base.info->name);
	n = n_filter = add_filter(port, insns);
	memcpy(insns + n, bpf_program__insns(program),
	       n_program * sizeof(*insns));
	n += mri_xdp_bind_calls(port, insns + n, n_program);
	n = mri_xdp_add_tag_out(port, insns, n_filter, n);
	fd = load_insns(port, insns, n, has_frags, NULL);
	if (fd < 0)
		fd = refuse_program(port, insns, n, has_frags, fd,
				    reterr_reason);
	mr_free(port->base.ctx, insns);
	return fd;
}

static int refuse_change(const struct xdp_port *port, struct mr_reason *reason)
{
	const struct xdp_prog *prog = &port->prog;

	if (prog->user != NULL || prog->is_foreign || prog->dispatched != NULL)
		return mr_fail(
			reason, -ENOTSUP,
			"%s: a filter is part of the port's own program, "
			"which does not exist with 'prog', 'map' or libxdp's "
			"dispatcher",
			port->base.info->name);
	if (port->lease.fds[XDP_LEASE_PASSED] < 0)
		return mr_fail(reason, -ENOTSUP,
			       "%s: it was opened without a filter: open it "
			       "with one, such as 'greater 0', which matches "
			       "every frame",
			       port->base.info->name);
	if (port->is_loss_known || mri_xdp_prog_is_detached(port))
		return mr_fail(reason, -ENODEV,
			       "%s: its program is no longer attached: the "
			       "interface is gone, or it was detached",
			       port->base.info->name);
	if (port->rules != NULL)
		return mr_fail(reason, -EBUSY,
			       "%s: its filter cannot change while rules are "
			       "open: close them first",
			       port->base.info->name);
	return 0;
}

int mri_xdp_filter_reload(struct xdp_port *port, struct mr_reason *reason)
{
	struct xdp_prog *prog = &port->prog;
	int err = mri_xdp_refuse_used(port, reason), fd;

	if (err < 0)
		return err;
	fd = mri_xdp_filter_load(port, prog->program, port->lease.has_frags,
				 reason);
	if (fd < 0)
		return fd;
	err = mri_xdp_prog_replace(port, prog->fd, fd);
	if (err < 0) {
		mr_fd_close(fd);
		return mr_fail(reason, err == -ENOLINK ? -ENODEV : -EIO,
			       "%s: the program with the new filter cannot "
			       "replace the old one: %s",
			       port->base.info->name, mr_strerror(-err));
	}
	mr_fd_close(prog->copy_fd);
	prog->fd = prog->copy_fd = fd;
	return 0;
}

int mri_xdp_set_filter(struct mr_port *base, const char *expression,
		       struct mr_reason *reterr_reason)
{
	struct xdp_port *port = (struct xdp_port *)base;
	struct xdp_filter old;
	int err = refuse_change(port, reterr_reason);

	if (err < 0)
		return err;
	mri_xdp_quiet_begin();
	old = port->filter;
	port->filter = (struct xdp_filter){ 0 };
	err = compile_filter(port, expression, reterr_reason);
	if (err == 0)
		err = port->lessor->set_filter(port, reterr_reason);
	mri_xdp_quiet_end();
	if (err == 0) {
		mr_free(base->ctx, old.insns);
		return 0;
	}
	mr_free(base->ctx, port->filter.insns);
	port->filter = old;
	return err;
}

void mri_xdp_filter_stats(const struct xdp_port *port, uint32_t queue,
			  struct mr_rx_stats *stats)
{
	uint64_t n;

	if (port->passed == NULL)
		return;
	n = __atomic_load_n(&port->passed[queue][0], __ATOMIC_RELAXED);
	stats->received += n;
	stats->passed_to_kernel += n;
}
