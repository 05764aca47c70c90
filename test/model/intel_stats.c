/* SPDX-License-Identifier: BSD-3-Clause */
/* Statistics, cleared by reading; 64-bit ones are read low half first. */
#include "intel.h"
#include "intel_regs.h"

enum { FCS_BYTES = 4 };

static uint32_t read_half(struct intel *nic, uint32_t offset, uint64_t *count,
			  bool *has_read_low)
{
	uint32_t value;

	if (offset == STAT_GORCL || offset == STAT_GOTCL) {
		*has_read_low = true;
		return (uint32_t)*count;
	}
	if (!*has_read_low)
		model_violation(&nic->m,
				"counter 0x%x is read before its low "
				"half",
				offset);
	value = (uint32_t)(*count >> 32);
	*count = 0;
	*has_read_low = false;
	return value;
}

bool intel_stat_read(struct intel *nic, uint32_t offset, uint32_t *ret)
{
	if (offset < REG_STATS || offset >= REG_STATS_END)
		return false;
	if (offset == STAT_GORCL || offset == STAT_GORCH) {
		*ret = read_half(nic, offset, &nic->gorc,
				 &nic->has_read_low[0]);
	} else if (offset == STAT_GOTCL || offset == STAT_GOTCH) {
		*ret = read_half(nic, offset, &nic->gotc,
				 &nic->has_read_low[1]);
	} else {
		*ret = *intel_reg(nic, offset);
		*intel_reg(nic, offset) = 0;
	}
	return true;
}

void intel_count_rx(struct intel *nic, const uint8_t *bytes, uint32_t n_bytes)
{
	static const uint8_t broadcast[6] = { 255, 255, 255, 255, 255, 255 };
	uint32_t n_ones = 0;

	for (int i = 0; i < 6; i++)
		n_ones += bytes[i] == broadcast[i];
	++*intel_reg(nic, STAT_GPRC);
	++*intel_reg(nic, STAT_TPR);
	if (n_ones == 6)
		++*intel_reg(nic, STAT_BPRC);
	else if (bytes[0] & 1)
		++*intel_reg(nic, STAT_MPRC);
	nic->gorc += n_bytes + FCS_BYTES;
}

void intel_count_tx(struct intel *nic, uint32_t n_bytes)
{
	++*intel_reg(nic, STAT_GPTC);
	++*intel_reg(nic, STAT_TPT);
	nic->gotc += n_bytes + FCS_BYTES;
}
