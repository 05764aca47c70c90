/* SPDX-License-Identifier: BSD-3-Clause */
/* Offloads of transmit descriptors: checksums, tags, segments. */
#include <string.h>

#include "intel.h"
#include "intel_regs.h"

enum {
	MIN_WIRE_BYTES = 60,
	TAG_BYTES = 4,
	TYPE_VLAN = 0x8100,
	TCP = 6,
	UDP = 17,
	TCP_SUM = 16, /* its offset in the header */
	UDP_SUM = 6,
	TCP_FIN_PSH = 0x09,
	TCP_CWR = 0x80,
};

static uint32_t command_of(const struct intel_desc *desc)
{
	return (uint32_t)desc->high;
}

static uint32_t type_of(const struct intel_desc *desc)
{
	if (!(command_of(desc) & TXD_DEXT))
		return UINT32_MAX; /* a legacy descriptor */
	return command_of(desc) & TXD_DTYP_MASK;
}

bool intel_is_data(const struct intel *nic, const struct intel_desc *desc)
{
	return type_of(desc) ==
	       (nic->chip->is_82574 ? TXD_82574_DATA : TXD_82576_DATA);
}

bool intel_is_context(const struct intel *nic, const struct intel_desc *desc)
{
	return type_of(desc) == (nic->chip->is_82574 ? 0 : TXD_82576_CONTEXT);
}

uint32_t intel_data_bytes(const struct intel *nic,
			  const struct intel_desc *desc)
{
	return command_of(desc) & (nic->chip->is_82574 ? 0xfffff : 0xffff);
}

void intel_context(struct intel *nic, struct intel_ring *ring,
		   const struct intel_desc *desc)
{
	const uint32_t idx =
		nic->chip->is_82574 ? 0 : (uint32_t)(desc->high >> 36) & 7;

	if (idx > 1) {
		model_violation(&nic->m, "tx ring %u: context %u of 2", ring->q,
				idx);
		return;
	}
	ring->context[idx] = *desc;
	ring->has_context[idx] = true;
}

static void job_82576(struct intel *nic, struct intel_ring *ring,
		      const struct intel_desc *desc, struct intel_job *job)
{
	const uint32_t command = command_of(desc);
	const uint32_t olinfo = (uint32_t)(desc->high >> 32);
	const uint32_t idx = olinfo >> 4 & 7;
	const uint32_t options = olinfo >> 8 & 0x3f;
	uint32_t where, tucmd, mss_l4;

	job->has_ip_sum = options & TXD_IXSM;
	job->has_l4_sum = options & TXD_TXSM;
	job->is_tso = command & TXD_82576_TSE;
	job->has_vlan = command & TXD_VLE;
	job->has_paylen = true;
	job->paylen = olinfo >> 14;
	if (!job->has_ip_sum && !job->has_l4_sum && !job->is_tso &&
	    !job->has_vlan)
		return;
	if (idx > 1 || !ring->has_context[idx]) {
		model_violation(&nic->m,
				"tx ring %u: offloads by context %u, "
				"which was not given",
				ring->q, idx);
		memset(job, 0, sizeof(*job));
		return;
	}
	where = (uint32_t)ring->context[idx].low;
	tucmd = command_of(&ring->context[idx]);
	mss_l4 = (uint32_t)(ring->context[idx].high >> 32);
	job->vlan_tci = (uint16_t)(where >> 16);
	job->l3 = where >> 9 & 0x7f;
	job->l4 = job->l3 + (where & 0x1ff);
	job->l3_end = job->l4;
	job->ip_sum = job->l3 + 10;
	job->is_ipv4 = tucmd & TUCMD_IPV4;
	job->is_tcp = tucmd & TUCMD_TCP;
	job->l4_sum = job->l4 + (job->is_tcp ? TCP_SUM : UDP_SUM);
	if (tucmd & TUCMD_SCTP)
		model_violation(&nic->m, "tx ring %u: SCTP", ring->q);
	job->mss = mss_l4 >> 16;
	job->header_bytes = job->l4 + (mss_l4 >> 8 & 0xff);
}

static void job_82574(struct intel *nic, struct intel_ring *ring,
		      const struct intel_desc *desc, struct intel_job *job)
{
	const struct intel_desc *context = &ring->context[0];
	const uint32_t command = command_of(desc);
	const uint32_t high = (uint32_t)(desc->high >> 32);
	const uint32_t low = (uint32_t)context->low;
	const uint32_t tu = (uint32_t)(context->low >> 32);
	const uint32_t tucmd = command_of(context);

	job->has_vlan = command & TXD_VLE;
	job->vlan_tci = (uint16_t)(high >> 16);
	job->has_ip_sum = high >> 8 & TXD_IXSM;
	job->has_l4_sum = high >> 8 & TXD_TXSM;
	job->is_tso = command & TXD_82574_TSE;
	if (!job->has_ip_sum && !job->has_l4_sum && !job->is_tso)
		return;
	if (!ring->has_context[0] || job->is_tso != !!(tucmd & TXD_82574_TSE)) {
		model_violation(&nic->m,
				"tx ring %u: offloads, but no context "
				"for them is in force",
				ring->q);
		memset(job, 0, sizeof(*job));
		return;
	}
	job->l3 = low & 0xff;
	job->ip_sum = low >> 8 & 0xff;
	job->l3_end = (low >> 16) + 1;
	job->l4 = tu & 0xff;
	job->l4_sum = tu >> 8 & 0xff;
	job->l4_end = tu >> 16 != 0 ? (tu >> 16) + 1 : 0;
	job->is_tcp = tucmd & TXD_82574_TCP;
	job->is_ipv4 = tucmd & TXD_82574_IP;
	job->header_bytes = (uint32_t)(context->high >> 40) & 0xff;
	job->mss = (uint32_t)(context->high >> 48);
	job->has_paylen = job->is_tso;
	job->paylen = tucmd & 0xfffff;
}

void intel_job(struct intel *nic, struct intel_ring *ring,
	       const struct intel_desc *desc, struct intel_job *job)
{
	if (nic->chip->is_82574)
		job_82574(nic, ring, desc, job);
	else
		job_82576(nic, ring, desc, job);
	if (job->has_vlan && !(*intel_reg(nic, REG_CTRL) & CTRL_VME)) {
		model_violation(&nic->m, "tx ring %u: a tag without CTRL.VME",
				ring->q);
		job->has_vlan = false;
	}
	if (job->has_vlan && *intel_reg(nic, REG_VET) != TYPE_VLAN)
		model_violation(&nic->m, "tx ring %u: a tag of type %x",
				ring->q, *intel_reg(nic, REG_VET));
}

/* Sum from @p first to @p end, added to the field's content. */
static bool insert_sum(uint8_t *bytes, uint32_t n_bytes, uint32_t first,
		       uint32_t end, uint32_t at, bool is_udp)
{
	uint16_t sum;

	if (end == 0 || end > n_bytes)
		end = n_bytes;
	if (first >= end || at < first || at + 2 > end)
		return false;
	sum = (uint16_t)~packet_sum(bytes + first, end - first, 0);
	if (is_udp && sum == 0)
		sum = 0xffff;
	packet_put16(bytes + at, sum);
	return true;
}

/* Insert the checksums, and verify them as the receiver would. */
static void insert_sums(struct intel *nic, struct intel_ring *ring,
			const struct intel_job *job, uint8_t *bytes,
			uint32_t n_bytes)
{
	struct packet p;
	bool is_done = true;

	if (job->has_ip_sum)
		is_done &= insert_sum(bytes, n_bytes, job->l3, job->l3_end,
				      job->ip_sum, false);
	if (job->has_l4_sum)
		is_done &= insert_sum(bytes, n_bytes, job->l4, job->l4_end,
				      job->l4_sum,
				      job->l4_sum == job->l4 + UDP_SUM);
	if (!is_done)
		model_violation(&nic->m,
				"tx ring %u: sums outside of a frame "
				"of %u bytes",
				ring->q, n_bytes);
	if (!job->has_ip_sum && !job->has_l4_sum)
		return;
	nic->n_sums++;
	p = packet_parse(bytes, n_bytes);
	if ((job->has_ip_sum && !packet_ip_sum_is_right(bytes, &p)) ||
	    (job->has_l4_sum &&
	     (p.protocol == 0 || !packet_l4_sum_is_right(bytes, &p))))
		nic->n_bad_sums++;
}

/* Set lengths, numbers and flags of segment i, which has n_payload bytes. */
static void edit_headers(const struct intel_job *job, uint8_t *bytes,
			 uint32_t i, uint32_t n_payload, bool is_last)
{
	const uint32_t n_l4 = job->header_bytes - job->l4 + n_payload;
	uint8_t *ip = bytes + job->l3, *l4 = bytes + job->l4;
	uint32_t sum;

	if (job->is_ipv4) {
		packet_put16(ip + 2, job->header_bytes - job->l3 + n_payload);
		packet_put16(ip + 4, packet_be16(ip + 4) + i);
	} else {
		packet_put16(ip + 4,
			     job->header_bytes - job->l3 - 40 + n_payload);
	}
	if (job->is_tcp) {
		packet_put32(l4 + 4, packet_be32(l4 + 4) + i * job->mss);
		if (!is_last)
			l4[13] &= (uint8_t)~TCP_FIN_PSH;
		if (i > 0)
			l4[13] &= (uint8_t)~TCP_CWR;
	} else {
		packet_put16(l4 + 4, n_l4);
	}
	/* The field has the pseudo-header's sum, without a length. */
	sum = packet_be16(bytes + job->l4_sum) + n_l4;
	packet_put16(bytes + job->l4_sum, (sum & 0xffff) + (sum >> 16));
}

static bool send_one(struct intel *nic, const struct intel_job *job,
		     uint32_t n_bytes)
{
	uint8_t *bytes = nic->segment;

	if (job->has_vlan) {
		memmove(bytes + 12 + TAG_BYTES, bytes + 12, n_bytes - 12);
		packet_put16(bytes + 12, (uint16_t)*intel_reg(nic, REG_VET));
		packet_put16(bytes + 14, job->vlan_tci);
		n_bytes += TAG_BYTES;
	}
	if (n_bytes < MIN_WIRE_BYTES) {
		if (!(*intel_reg(nic, REG_TCTL) & TCTL_PSP))
			model_violation(&nic->m,
					"a frame of %u bytes, and no "
					"TCTL.PSP",
					n_bytes);
		memset(bytes + n_bytes, 0, MIN_WIRE_BYTES - n_bytes);
		n_bytes = MIN_WIRE_BYTES;
	}
	if (!model_tx(&nic->m, bytes, n_bytes))
		return false;
	intel_count_tx(nic, n_bytes);
	return true;
}

static bool is_segmentable(struct intel *nic, struct intel_ring *ring,
			   const struct intel_job *job)
{
	if (job->mss > 0 && job->has_l4_sum && job->header_bytes > job->l4 &&
	    job->header_bytes < job->n_bytes &&
	    job->l4_sum + 2 <= job->header_bytes &&
	    job->header_bytes + job->mss <= nic->chip->max_frame_bytes &&
	    (!job->is_ipv4 || job->has_ip_sum))
		return true;
	model_violation(&nic->m,
			"tx ring %u: cannot be segmented: %u bytes, "
			"header %u, MSS %u",
			ring->q, job->n_bytes, job->header_bytes, job->mss);
	return false;
}

bool intel_send(struct intel *nic, struct intel_ring *ring,
		const struct intel_job *job)
{
	uint32_t n_payload, n_segments;

	if (!job->is_tso) {
		memcpy(nic->segment, nic->frame, job->n_bytes);
		insert_sums(nic, ring, job, nic->segment, job->n_bytes);
		return send_one(nic, job, job->n_bytes);
	}
	if (!is_segmentable(nic, ring, job))
		return true; /* it is lost */
	n_payload = job->n_bytes - job->header_bytes;
	n_segments = (n_payload + job->mss - 1) / job->mss;
	for (; ring->n_segments < n_segments; ring->n_segments++) {
		const uint32_t i = ring->n_segments;
		const uint32_t at = i * job->mss;
		const uint32_t n =
			n_payload - at < job->mss ? n_payload - at : job->mss;

		memcpy(nic->segment, nic->frame, job->header_bytes);
		memcpy(nic->segment + job->header_bytes,
		       nic->frame + job->header_bytes + at, n);
		edit_headers(job, nic->segment, i, n, i + 1 == n_segments);
		insert_sums(nic, ring, job, nic->segment,
			    job->header_bytes + n);
		if (!send_one(nic, job, job->header_bytes + n))
			return false;
	}
	nic->n_segmented++;
	return true;
}
