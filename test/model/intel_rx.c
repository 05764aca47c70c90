/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive: filters, RSS, checksums, buffers, write-back of descriptors. */
#include <string.h>

#include "intel.h"
#include "intel_regs.h"

enum {
	FCS_BYTES = 4,
	MIN_BYTES = 60,
	TAG_BYTES = 4,
	TAG_TYPE = 0x8100,
	LONGEST_WITHOUT_LPE = 1518, /* with FCS; excluding a tag */
	N_RAL = 16,
	TCP = 6,
	UDP = 17,
};

static bool multicast_is_wanted(struct intel *nic, const uint8_t *mac)
{
	/* Distance of the 12 bits from the end of the address: RCTL.MO. */
	static const uint32_t shifts[] = { 4, 3, 2, 0 };
	const uint32_t rctl = *intel_reg(nic, REG_RCTL);
	const uint32_t last = mac[4] | (uint32_t)mac[5] << 8;
	const uint32_t hash = last >> shifts[rctl >> 12 & 3] & 0xfff;

	return (rctl & RCTL_MPE) ||
	       (*intel_reg(nic, REG_MTA + (hash >> 5) * 4) >> (hash & 31) & 1);
}

static bool has_address(struct intel *nic, const uint8_t *mac)
{
	const uint32_t low =
		mac[0] | mac[1] << 8 | mac[2] << 16 | (uint32_t)mac[3] << 24;
	const uint32_t high = mac[4] | (uint32_t)mac[5] << 8;

	for (uint32_t i = 0; i < N_RAL; i++) {
		const uint32_t rah = *intel_reg(nic, REG_RAL + 8 * i + 4);

		if ((rah & RAH_AV) && (rah & 0xffff) == high &&
		    *intel_reg(nic, REG_RAL + 8 * i) == low)
			return true;
	}
	return false;
}

static bool address_is_wanted(struct intel *nic, const uint8_t *mac)
{
	static const uint8_t broadcast[6] = { 255, 255, 255, 255, 255, 255 };
	const uint32_t rctl = *intel_reg(nic, REG_RCTL);

	if (memcmp(mac, broadcast, 6) == 0)
		return rctl & (RCTL_BAM | RCTL_MPE);
	if (has_address(nic, mac))
		return true;
	return mac[0] & 1 ? multicast_is_wanted(nic, mac) :
			    (rctl & RCTL_UPE) != 0;
}

/* Check the length; count a frame that is too long or too short. */
static bool length_is_right(struct intel *nic, uint32_t n_bytes, bool has_vlan)
{
	uint32_t longest = LONGEST_WITHOUT_LPE + TAG_BYTES * has_vlan;

	if (*intel_reg(nic, REG_RCTL) & RCTL_LPE)
		longest = nic->chip->is_82574 ?
				  nic->chip->max_frame_bytes + FCS_BYTES :
				  *intel_reg(nic, REG_RLPML);
	if (n_bytes + FCS_BYTES > longest) {
		++*intel_reg(nic, STAT_ROC);
		return false;
	}
	if (n_bytes < MIN_BYTES) {
		++*intel_reg(nic, STAT_RUC);
		return false;
	}
	return true;
}

bool intel_accepts(struct intel *nic, const uint8_t *bytes, uint32_t n_bytes)
{
	const struct packet p = packet_parse(bytes, n_bytes);
	const uint32_t id = p.vlan_tci & 0xfff;

	if (!length_is_right(nic, n_bytes, p.has_vlan))
		return false;
	if (p.has_vlan && (*intel_reg(nic, REG_RCTL) & RCTL_VFE) &&
	    !(*intel_reg(nic, REG_VFTA + (id >> 5) * 4) >> (id & 31) & 1))
		return false;
	return address_is_wanted(nic, bytes);
}

/* The RSS type (of a descriptor) selected by MRQC; 0: no hash. */
static uint32_t rss_type(uint32_t mrqc, const struct packet *p)
{
	if (p->version == 4) {
		if (p->protocol == TCP && (mrqc & MRQC_TCPV4))
			return 1;
		if (p->protocol == UDP && (mrqc & MRQC_UDPV4))
			return 7;
		return mrqc & MRQC_IPV4 ? 2 : 0;
	}
	if (p->version == 6) {
		if (p->protocol == TCP && (mrqc & MRQC_TCPV6))
			return 3;
		if (p->protocol == UDP && (mrqc & MRQC_UDPV6))
			return 8;
		return mrqc & MRQC_IPV6 ? 5 : 0;
	}
	return 0;
}

uint32_t intel_rss(struct intel *nic, const uint8_t *bytes,
		   const struct packet *p, uint32_t *ret_type,
		   uint32_t *ret_hash)
{
	const uint32_t mrqc = *intel_reg(nic, REG_MRQC);
	uint8_t key[PACKET_KEY_BYTES];
	uint32_t entry, q;

	*ret_type = 0;
	*ret_hash = 0;
	if ((mrqc & 7) != nic->chip->rss_mode)
		return 0;
	*ret_type = rss_type(mrqc, p);
	if (*ret_type == 0)
		return 0;
	for (uint32_t i = 0; i < PACKET_KEY_BYTES; i++)
		key[i] = (uint8_t)(*intel_reg(nic, REG_RSSRK + i / 4 * 4) >>
				   8 * (i % 4));
	*ret_hash =
		packet_hash(key, bytes, p, *ret_type != 2 && *ret_type != 5);
	entry = *intel_reg(nic, REG_RETA + (*ret_hash & 127) / 4 * 4) >>
			8 * (*ret_hash & 3) &
		0xff;
	q = nic->chip->is_82574 ? entry >> 7 : entry & 15;
	if (q < nic->chip->n_queues)
		return q;
	model_violation(&nic->m, "RETA sends to queue %u of %u", q,
			nic->chip->n_queues);
	return 0;
}

/* The content of a frame's last descriptor. */
struct verdict {
	uint32_t type, hash, packet_type, status;
	uint16_t vlan_tci;
};

static struct verdict judge(struct intel *nic, const uint8_t *bytes,
			    const struct packet *p)
{
	const uint32_t rxcsum = *intel_reg(nic, REG_RXCSUM);
	struct verdict v = { .status = 0 };

	if (p->version == 4) {
		v.packet_type = RXD_TYPE_IPV4;
		if (rxcsum & RXCSUM_IPOFL)
			v.status |= RXD_IPCS;
		if ((rxcsum & RXCSUM_IPOFL) &&
		    !packet_ip_sum_is_right(bytes, p))
			v.status |= RXD_IPE;
	} else if (p->version == 6) {
		v.packet_type = RXD_TYPE_IPV6;
	}
	if (p->protocol == TCP)
		v.packet_type |= RXD_TYPE_TCP;
	else if (p->protocol == UDP)
		v.packet_type |= RXD_TYPE_UDP;
	/* A UDP packet without a checksum: no result. */
	if (p->protocol == 0 || !(rxcsum & RXCSUM_TUOFL) ||
	    (p->protocol == UDP && packet_be16(bytes + p->l4 + 6) == 0))
		return v;
	v.status |= p->protocol == TCP ? RXD_TCPCS : RXD_UDPCS;
	if (!packet_l4_sum_is_right(bytes, p))
		v.status |= RXD_TCPE;
	return v;
}

/* Drivers poll the upper half: store it last, in one access. */
static void write_back(struct intel_desc *at, uint64_t low, uint64_t high)
{
	__atomic_store_n(&at->low, low, __ATOMIC_RELAXED);
	__atomic_store_n(&at->high, high, __ATOMIC_RELEASE);
}

static void complete_descriptor(struct intel *nic, struct intel_ring *ring,
				uint32_t i, uint32_t n_bytes,
				const struct verdict *verdict, bool is_last)
{
	const struct model_faults *faults = &nic->m.faults;
	struct verdict v = { .status = 0 };
	struct intel_desc *at;

	if (is_last)
		v = *verdict;
	v.status |= RXD_DD | (is_last ? RXD_EOP : 0);
	if (model_fault(&nic->m, faults->bad_count))
		v.status &= ~RXD_EOP;
	if (model_fault(&nic->m, faults->error_bits))
		v.status |= model_random(&nic->m) % 2 ? RXD_RXE : RXD_CE;
	if (model_fault(&nic->m, faults->bad_length))
		n_bytes = model_random(&nic->m) % 4 == 0 ?
				  0 :
				  intel_rx_buffer_bytes(nic, ring) +
					  model_random(&nic->m) % 0xf000;
	if (model_fault(&nic->m, faults->bad_hash)) {
		v.type = model_random(&nic->m) & 15;
		v.packet_type = model_random(&nic->m) & 0xfff0;
		v.hash = model_random(&nic->m);
		v.vlan_tci = (uint16_t)model_random(&nic->m);
		v.status ^= model_random(&nic->m) & 0xfffc;
	}
	if (model_fault(&nic->m, faults->bad_id))
		i = model_random(&nic->m) % ring->n;
	at = intel_desc_at(nic, ring, i);
	if (at == NULL)
		return;
	if (nic->chip->is_82574)
		v.packet_type = ring->q << 8;
	write_back(at, v.packet_type | v.type | (uint64_t)v.hash << 32,
		   v.status | (uint64_t)(n_bytes & 0xffff) << 32 |
			   (uint64_t)v.vlan_tci << 48);
}

static void fill_buffers(struct intel *nic, struct intel_ring *ring,
			 const uint8_t *bytes, uint32_t n_bytes,
			 const struct verdict *verdict)
{
	const uint32_t room = intel_rx_buffer_bytes(nic, ring);
	uint32_t n_done = 0;

	while (n_done < n_bytes) {
		const uint32_t i = ring->head;
		const uint64_t iova = ring->given[i].low;
		const uint32_t n =
			n_bytes - n_done < room ? n_bytes - n_done : room;
		const struct intel_desc *now = intel_desc_at(nic, ring, i);
		uint8_t *to = NULL;

		if (now != NULL)
			intel_desc_is_kept(nic, ring, i, now);
		if (!model_fault(&nic->m, nic->m.faults.dma_unmapped))
			to = model_dma(&nic->m, iova, n);
		if (to != NULL)
			memcpy(to, bytes + n_done, n);
		n_done += n;
		ring->head = (i + 1) % ring->n;
		intel_disown(nic, iova);
		complete_descriptor(nic, ring, i, n, verdict,
				    n_done == n_bytes);
	}
}

static bool has_several_queues(struct intel *nic)
{
	uint32_t n = 0;

	for (uint32_t q = 0; q < nic->chip->n_queues; q++)
		n += (nic->regs[(nic->rx[q].base + RING_CONTROL) / 4] &
		      QUEUE_ENABLE) != 0;
	return n > 1;
}

/* The ring has too few buffers. True: the frame is dropped. */
static bool drops_for_want(struct intel *nic, struct intel_ring *ring,
			   uint32_t n_need)
{
	const uint32_t srrctl = nic->regs[(ring->base + RING_SRRCTL) / 4];
	const bool may_drop = !nic->chip->is_82574 && (srrctl & SRRCTL_DROP_EN);

	if (!may_drop && has_several_queues(nic))
		model_violation(&nic->m,
				"rx ring %u blocks the others: no "
				"SRRCTL.DROP_EN",
				ring->q);
	if (may_drop || n_need >= ring->n) {
		ring->drops++;
		return true;
	}
	if (!ring->has_wanted)
		++*intel_reg(nic, STAT_RNBC);
	/* There is no FIFO: without a buffer, it overruns. */
	if (!ring->has_wanted && nic->chip->is_82574)
		intel_irq_other(nic, CAUSE_RXO);
	ring->has_wanted = true;
	return false;
}

/* The bytes as stored in memory: without a tag, or with an FCS. */
static const uint8_t *prepare_bytes(struct intel *nic, const uint8_t *bytes,
				    uint32_t *n_bytes, const struct packet *p,
				    struct verdict *v)
{
	const uint32_t fcs = packet_fcs(bytes, *n_bytes);
	const bool is_stripped = p->has_vlan &&
				 (*intel_reg(nic, REG_CTRL) & CTRL_VME) &&
				 *intel_reg(nic, REG_VET) == TAG_TYPE;
	const uint32_t n_gone = is_stripped ? TAG_BYTES : 0;

	memcpy(nic->segment, bytes, 12);
	memcpy(nic->segment + 12, bytes + 12 + n_gone, *n_bytes - 12 - n_gone);
	*n_bytes -= n_gone;
	if (is_stripped) {
		v->vlan_tci = p->vlan_tci;
		v->status |= RXD_VP;
	}
	if (!(*intel_reg(nic, REG_RCTL) & RCTL_SECRC)) {
		memcpy(nic->segment + *n_bytes, &fcs, FCS_BYTES);
		*n_bytes += FCS_BYTES;
	}
	return nic->segment;
}

/* False: it must wait for buffers. */
static bool receive_frame(struct intel *nic, const uint8_t *bytes,
			  uint32_t n_bytes, uint32_t *ret_queues)
{
	const struct packet p = packet_parse(bytes, n_bytes);
	struct verdict v = judge(nic, bytes, &p);
	const uint32_t q = intel_rss(nic, bytes, &p, &v.type, &v.hash);
	struct intel_ring *ring = &nic->rx[q];
	uint32_t n_stored = n_bytes, n_free, n_need;
	const uint8_t *stored;

	if (!intel_ring_is_on(nic, ring)) {
		/* Before the first tail, or for a nonexistent queue. */
		if (nic->rx[0].n > 0 && q > 0)
			model_violation(&nic->m,
					"RSS sends to rx ring %u, "
					"which is off",
					q);
		return q > 0;
	}
	n_free = (ring->tail + ring->n - ring->head) % ring->n;
	stored = prepare_bytes(nic, bytes, &n_stored, &p, &v);
	n_need = (n_stored + intel_rx_buffer_bytes(nic, ring) - 1) /
		 intel_rx_buffer_bytes(nic, ring);
	if (n_need > n_free)
		return drops_for_want(nic, ring, n_need);
	ring->has_wanted = false;
	if (intel_desc_at(nic, ring, ring->head) == NULL)
		return false; /* bus master is off */
	intel_count_rx(nic, bytes, n_bytes);
	fill_buffers(nic, ring, stored, n_stored, &v);
	*ret_queues |= 1u << q;
	return true;
}

static void complete_at_random(struct intel *nic, struct intel_ring *ring)
{
	const struct verdict v = { .hash = model_random(&nic->m) };

	if (ring->n > 0)
		complete_descriptor(nic, ring, model_random(&nic->m) % ring->n,
				    model_random(&nic->m) & 0xffff, &v, true);
}

void intel_rx_step(struct intel *nic)
{
	const bool is_off =
		!nic->is_link_up || !(*intel_reg(nic, REG_RCTL) & RCTL_EN);
	uint32_t n_bytes, queues = 0;
	const uint8_t *bytes;

	if (!is_off && model_rx_peek(&nic->m, &n_bytes) != NULL &&
	    intel_is_late(nic, &nic->rx[0]))
		return;
	while ((bytes = model_rx_peek(&nic->m, &n_bytes)) != NULL) {
		if (!is_off && intel_accepts(nic, bytes, n_bytes) &&
		    !receive_frame(nic, bytes, n_bytes, &queues))
			break;
		model_rx_pop(&nic->m);
	}
	if (model_fault(&nic->m, nic->m.faults.wrong_completion))
		complete_at_random(nic, &nic->rx[0]);
	for (uint32_t q = 0; q < nic->chip->n_queues; q++)
		if (queues >> q & 1)
			intel_irq_queue(nic, &nic->rx[q]);
}
