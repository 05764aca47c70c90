/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * The sender in the kernel. BPF_PROG_RUN runs it repeatedly on frames of a page
 * pool. It makes a frame that is due and returns XDP_TX, or drops the frame if
 * none is due. So a rate is as exact as the kernel's loop, which runs in
 * batches of 64.
 *
 * The page of a frame returns as its receiver left it, so headers are written
 * each time.
 *
 * Source: Documentation/bpf/bpf_prog_run.rst, "Running XDP programs in live
 * frame mode"; net/bpf/test_run.c.
 */
#include <stdbool.h>

#include <linux/bpf.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "live/live_shape.h"
#include "net/hist.h"

/* Runs between two readings of the clock, which cost 20 ns. */
enum { READ_EVERY = 16 };

/* The used members of the kernel's structs; libbpf finds their offsets. */
struct ns_common {
	unsigned int inum;
} __attribute__((preserve_access_index));

struct net {
	struct ns_common ns;
} __attribute__((preserve_access_index));

typedef struct {
	struct net *net;
} __attribute__((preserve_access_index)) possible_net_t;

struct net_device {
	int ifindex;
	possible_net_t nd_net;
} __attribute__((preserve_access_index));

const volatile struct live_shape shape;
/* Mean 1, as 16.16 numbers. */
const volatile __u32 gaps[LIVE_GAPS];

struct live_orders orders;
struct live_counts counts;
__u64 lateness[LIVE_LATENESS]; /* of frames that were due at a time */
_Static_assert(HIST_BUCKETS <= LIVE_LATENESS, "each has its place");

static __u64 n_turns;
static __u64 n_runs, last_ns; /* of the clock's reading */
static __u64 random_state;
static __u64 task; /* that all this runs in */
/* Of the frame that was made last. */
static __u32 last_stream, last_bytes;

static __always_inline __u64 draw_random(void)
{
	__u64 x = random_state; /* xorshift64: Marsaglia, 2003 */

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	random_state = x;
	return x;
}

static __always_inline __u16 fold_sum(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (__u16)((sum & 0xffff) + (sum >> 16));
}

static __always_inline void begin_run(void)
{
	counts.has_begun = 1;
	n_turns = n_runs = 0;
	random_state = shape.seed | 1;
	task = bpf_get_current_task();
}

static __always_inline __u64 n_left(void)
{
	const __u64 n_gone = counts.n_passed + counts.n_unsent;

	if (orders.n_frames == 0)
		return ~0ull;
	return n_gone < orders.n_frames ? orders.n_frames - n_gone : 0;
}

static __always_inline bool is_over(__u64 now)
{
	return orders.is_stopped ||
	       (orders.end_ns != 0 && now >= orders.end_ns) || n_left() == 0;
}

static __always_inline void next_burst(void)
{
	__u64 gap = orders.gap;

	if (orders.pace == LIVE_POISSON)
		gap = gap * (gaps[draw_random() % LIVE_GAPS] >> 4) >> 12;
	live_due_add(&counts.due, gap);
	counts.due.in_burst = 0;
}

/* Give up frames that have been due for too long: the rest of a burst, and
 * whole bursts. */
static __always_inline void give_up_late(__u64 now)
{
	const __u64 n_bursts = live_due_before(
		&counts.due, now - orders.max_lag_ns, orders.gap);
	const __u64 n_most = n_left();
	__u64 n = n_bursts * orders.burst_frames - counts.due.in_burst;

	if (n > n_most)
		n = n_most;
	live_due_add(&counts.due, n_bursts * orders.gap);
	counts.due.in_burst = 0;
	counts.n_unsent += n;
	if (counts.is_set_up)
		counts.n_set_up += n;
}

/* hist_bucket() without counting leading zeros, which clang 14 cannot. */
static __always_inline __u32 bucket_of(__u64 ns)
{
	__u64 rest = ns >> HIST_SUB_BITS;
	__u32 shift = 0;

	if (ns >= 1ull << HIST_VALUE_BITS)
		return HIST_BUCKETS - 1;
	for (int step = 16; step > 0; step >>= 1)
		if (rest >> step) {
			rest >>= step;
			shift += (__u32)step;
		}
	return (shift << HIST_SUB_BITS) + (__u32)(ns >> shift);
}

/* Whether a frame is due, and since when. */
static __always_inline bool is_due(__u64 now, __u64 *ret_due)
{
	*ret_due = now;
	if (orders.gap == 0)
		return now >= orders.begin_ns;
	if (now < counts.due.ns)
		return false;
	if (now - counts.due.ns > orders.max_lag_ns) {
		give_up_late(now);
		if (now < counts.due.ns || n_left() == 0)
			return false;
	}
	counts.is_set_up = 0;
	*ret_due = counts.due.ns;
	lateness[bucket_of(now - *ret_due) % LIVE_LATENESS]++;
	if (now - *ret_due > counts.late_max_ns)
		counts.late_max_ns = now - *ret_due;
	if (++counts.due.in_burst >= orders.burst_frames)
		next_burst();
	return true;
}

static __always_inline __u32 value_of(const volatile struct live_field *field,
				      __u64 turn)
{
	__u64 i;

	if (field->is_random)
		i = (draw_random() >> 32) * field->n >> 32;
	else if (field->every == 1)
		i = turn % field->n;
	else
		i = turn / field->every % field->n;
	if (field->set_at == LIVE_NO_SET)
		return field->first + (__u32)i * field->step;
	return shape.values[(field->set_at + i) % LIVE_MAX_VALUES];
}

/* Write a value beside the fixed bits of its word. Returns what it adds to a
 * checksum. */
static __always_inline __u32 put_value(__u8 *data, void *data_end, __u32 offset,
				       __u32 n_bytes, __u32 value, __u32 fixed)
{
	__u8 *at = data + (offset & 127);

	if ((void *)(at + 4) > data_end)
		return 0;
	if (n_bytes == 4) {
		*(__u32 *)at = bpf_htonl(value | fixed);
		return (value >> 16) + (value & 0xffff);
	}
	if (n_bytes == 2) {
		*(__u16 *)at = bpf_htons((__u16)(value | fixed));
		return value & 0xffff;
	}
	*at = (__u8)(value | fixed);
	return offset & 1 ? value & 0xff : (value & 0xff) << 8;
}

static __always_inline __u64 words_of(__u64 value)
{
	return (value & 0xffff) + (value >> 16 & 0xffff) +
	       (value >> 32 & 0xffff);
}

/* Write the stamp, see stream/stamp.h. Returns what it adds to a checksum. */
static __always_inline __u64 put_stamp(__u8 *data, void *data_end,
				       const volatile struct live_frame *frame,
				       __u32 lane, __u64 seq, __u64 due_ns)
{
	const __u32 place = frame->n_bytes - LIVE_STAMP_BYTES;
	__u8 *at = data + place;
	__u64 sum;

	if (orders.run != 0) /* as stamp_due() */
		due_ns = (__u64)orders.run << 32 | (__u32)due_ns;

	if (place > LIVE_MAX_BYTES ||
	    (void *)(at + LIVE_STAMP_BYTES) > data_end)
		return 0;
	*(__u32 *)at = bpf_htonl(orders.magic);
	*(__u16 *)(at + 4) = bpf_htons((__u16)lane);
	*(__u16 *)(at + 6) = bpf_htons((__u16)(seq >> 32));
	*(__u32 *)(at + 8) = bpf_htonl((__u32)seq);
	*(__u16 *)(at + 12) = bpf_htons((__u16)(due_ns >> 32));
	*(__u32 *)(at + 14) = bpf_htonl((__u32)due_ns);
	sum = words_of(orders.magic) + lane + words_of(seq) + words_of(due_ns);
	/* Words that begin at an odd byte count the other way round. */
	return frame->is_stamp_odd ? bpf_htons(fold_sum(sum)) : sum;
}

/* A longer frame has 0 where the page's last one had its stamp. */
static __always_inline void clear_stamps(__u8 *data, void *data_end)
{
	for (__u32 i = 0; i < LIVE_MAX_STAMPS && i < shape.n_stamps; i++) {
		const __u32 place = shape.stamps_at[i];
		__u8 *at = data + place;

		if (place > LIVE_MAX_BYTES ||
		    (void *)(at + LIVE_STAMP_BYTES) > data_end)
			continue;
		*(__u64 *)at = 0;
		*(__u64 *)(at + 8) = 0;
		*(__u16 *)(at + 16) = 0;
	}
}

static __always_inline void put_header(const volatile struct live_frame *frame,
				       __u64 *data, void *data_end)
{
	const volatile __u64 *from = (const volatile __u64 *)frame->header;

	for (int i = 0; i < LIVE_SHORT_BYTES / 8; i++)
		data[i] = from[i];
	for (int i = LIVE_SHORT_BYTES / 8; i < LIVE_HEADER_BYTES / 8; i++) {
		if (!shape.has_long || (void *)(data + i + 1) > data_end)
			return;
		data[i] = from[i];
	}
}

static __always_inline void put_sums(const volatile struct live_frame *frame,
				     __u8 *data, void *data_end, __u64 ip_sum,
				     __u64 l4_sum)
{
	__u16 sum;

	if (frame->ip_sum_at != 0)
		put_value(data, data_end, frame->ip_sum_at, 2,
			  (__u16)~fold_sum(frame->ip_sum + ip_sum), 0);
	if (frame->l4_sum_at == 0)
		return;
	sum = (__u16)~fold_sum(frame->l4_sum + l4_sum);
	if (sum == 0 && frame->is_udp)
		sum = 0xffff;
	put_value(data, data_end, frame->l4_sum_at, 2, sum, 0);
}

static __always_inline __u32 next_stream(void)
{
	if (shape.n_streams == 1)
		return 0;
	return shape.turns[n_turns++ % shape.n_turns % LIVE_MAX_TURNS] %
	       LIVE_MAX_STREAMS;
}

static __always_inline const volatile struct live_frame *
next_frame(const volatile struct live_stream *stream, __u64 turn)
{
	__u64 at;

	if (shape.n_frames == 1)
		return &shape.frames[0];
	at = stream->sizes_at + turn % stream->n_sizes;
	return &shape.frames[shape.sizes[at % LIVE_MAX_SIZES] %
			     LIVE_MAX_FRAMES];
}

/* Frames begin as long as the longest. */
static __always_inline bool cut_frame(struct xdp_md *ctx, __u32 n_bytes)
{
	return n_bytes == shape.max_bytes ||
	       bpf_xdp_adjust_tail(ctx, (int)n_bytes - (int)shape.max_bytes) ==
		       0;
}

/* Make the next frame of stream i. False: its buffer has another size. */
static __always_inline bool make_frame(struct xdp_md *ctx, __u32 i,
				       __u64 due_ns)
{
	const volatile struct live_stream *stream = &shape.streams[i];
	const __u64 seq = counts.by_stream[i];
	const __u64 turn = seq * shape.n_senders + shape.sender;
	const volatile struct live_frame *frame = next_frame(stream, seq);
	__u64 ip_sum = 0, l4_sum = 0;
	void *data_end;
	__u8 *data;

	if (!cut_frame(ctx, frame->n_bytes))
		return false;
	data = (__u8 *)(long)ctx->data;
	data_end = (void *)(long)ctx->data_end;
	if ((void *)(data + LIVE_MIN_BYTES) > data_end)
		return false;
	clear_stamps(data, data_end);
	put_header(frame, (__u64 *)data, data_end);
	for (__u32 f = 0; f < LIVE_MAX_FIELDS && f < stream->n_fields; f++) {
		const volatile struct live_field *field = &stream->fields[f];
		const __u32 sum =
			put_value(data, data_end, field->offset, field->n_bytes,
				  value_of(field, turn), field->fixed);

		if (field->sums & LIVE_SUM_IP)
			ip_sum += sum;
		if (field->sums & LIVE_SUM_L4)
			l4_sum += sum;
	}
	if (shape.is_stamped)
		l4_sum += put_stamp(data, data_end, frame,
				    i * shape.n_senders + shape.sender, seq,
				    due_ns);
	put_sums(frame, data, data_end, ip_sum, l4_sum);
	counts.by_stream[i]++;
	counts.n_bytes += frame->n_bytes;
	last_stream = i;
	last_bytes = frame->n_bytes;
	return true;
}

/* At full speed and without stamps, no frame needs the time, so the clock is
 * read only now and then, to find the end. */
static __always_inline __u64 clock_now(void)
{
	if (orders.gap != 0 || shape.is_stamped || n_runs++ % READ_EVERY == 0)
		last_ns = bpf_ktime_get_ns() - orders.origin_ns;
	return last_ns;
}

SEC("xdp")
int live_send(struct xdp_md *ctx)
{
	__u64 now, due_ns;

	if (!counts.has_begun)
		begin_run();
	now = clock_now();
	if (is_over(now)) {
		counts.is_done = 1;
		return XDP_DROP;
	}
	if (!is_due(now, &due_ns))
		return XDP_DROP;
	if (!make_frame(ctx, next_stream(), due_ns))
		return XDP_ABORTED;
	counts.n_passed++;
	counts.last_ns = now;
	return XDP_TX;
}

/*
 * Whether an event is about the frames of this sender: the NAPI of the peer may
 * run in the same task, and another namespace may have the same ifindex.
 */
static __always_inline bool is_ours(const struct net_device *dev)
{
	return dev->ifindex == (int)shape.ifindex &&
	       dev->nd_net.net->ns.inum == shape.netns &&
	       bpf_get_current_task() == task;
}

/* XDP_TX sends a frame out of the interface that it came from. */
SEC("tp_btf/xdp_devmap_xmit")
int BPF_PROG(live_refused, const struct net_device *from,
	     const struct net_device *to, int sent, int drops)
{
	if (from == to && drops > 0 && is_ours(to))
		counts.n_refused += (__u64)drops;
	return 0;
}

/* Follows the run that made the frame, whose number is used again. */
SEC("tp_btf/xdp_redirect_err")
int BPF_PROG(live_no_way, const struct net_device *dev)
{
	const __u32 i = last_stream % LIVE_MAX_STREAMS;

	if (!is_ours(dev))
		return 0;
	counts.n_no_way++;
	if (counts.by_stream[i] > 0) {
		counts.by_stream[i]--;
		counts.n_bytes -= last_bytes;
	}
	return 0;
}

char licence_text[] SEC("license") = "Dual BSD/GPL";
