/* SPDX-License-Identifier: BSD-3-Clause */
/* Registers: access rules, reset, link, PHY, NVM. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "intel.h"
#include "intel_regs.h"

enum {
	RESET_QUIET_NS = 1000000, /* no access for 1 ms after CTRL.RST */
	PHY_CONTROL = 0,
	PHY_STATUS = 1,
	PHY_AN_ENABLE = 0x1000,
	PHY_AN_RESTART = 0x0200,
	PHY_LINK = 0x4,
	PHY_AN_DONE = 0x20,
	EERD_START = 1,
	EERD_DONE = 2,
};

const struct intel_chip chip_82574l = {
	.name = "82574L",
	.device_id = 0x10d3,
	.n_queues = 2,
	.rss_mode = 1,
	.n_vectors = 5,
	.max_frame_bytes = 9216 - 4,
	.is_82574 = true,
};

const struct intel_chip chip_82576 = {
	.name = "82576",
	.device_id = 0x10c9,
	.n_queues = 16,
	.rss_mode = 2,
	.n_vectors = 10,
	.max_frame_bytes = 9728 - 4,
	.has_head_writeback = true,
};

const struct intel_chip chip_i210 = {
	.name = "I210",
	.device_id = 0x1533,
	.n_queues = 4,
	.rss_mode = 2,
	.n_vectors = 5,
	.max_frame_bytes = 9728 - 4,
	.has_head_writeback = true,
	.has_i210_ivar = true,
};

const struct intel_chip chip_i350 = {
	.name = "I350",
	.device_id = 0x1521,
	.n_queues = 8,
	.rss_mode = 2,
	.n_vectors = 10,
	.max_frame_bytes = 9728 - 4,
	.has_head_writeback = true,
	.has_i210_ivar = true,
};

uint32_t intel_ring_base(bool is_tx, uint32_t q)
{
	if (q < 4)
		return (is_tx ? REG_TX_RINGS : REG_RX_RINGS) + 0x100 * q;
	return (is_tx ? REG_TX_RINGS_HIGH : REG_RX_RINGS_HIGH) + 0x40 * q;
}

/* The ring whose registers are at @p offset, or NULL. */
static struct intel_ring *find_ring(struct intel *nic, uint32_t offset)
{
	for (uint32_t q = 0; q < nic->chip->n_queues; q++) {
		if (offset - nic->rx[q].base < 0x40)
			return &nic->rx[q];
		if (offset - nic->tx[q].base < 0x40)
			return &nic->tx[q];
	}
	return NULL;
}

static void load_nvm(struct intel *nic)
{
	const uint8_t *mac = nic->mac;

	*intel_reg(nic, REG_RAL) =
		mac[0] | mac[1] << 8 | mac[2] << 16 | (uint32_t)mac[3] << 24;
	*intel_reg(nic, REG_RAL + 4) = mac[4] | (uint32_t)mac[5] << 8 | RAH_AV;
	*intel_reg(nic, REG_EECD) =
		EECD_PRES | (nic->is_auto_rd ? EECD_AUTO_RD : 0);
}

static void reset_ring(struct intel_ring *ring, bool is_tx, uint32_t q)
{
	memset(ring, 0, offsetof(struct intel_ring, given));
	ring->q = q;
	ring->is_tx = is_tx;
	ring->base = intel_ring_base(is_tx, q);
}

/* Set registers as after power-on, or CTRL.RST. */
static void reset_registers(struct intel *nic)
{
	memset(nic->regs, 0, sizeof(nic->regs));
	memset(nic->owned, 0, sizeof(nic->owned));
	memset(nic->mta_written, 0, sizeof(nic->mta_written));
	memset(nic->next_irq_ns, 0, sizeof(nic->next_irq_ns));
	memset(nic->phy, 0, sizeof(nic->phy));
	memset(nic->has_read_low, 0, sizeof(nic->has_read_low));
	for (uint32_t q = 0; q < INTEL_MAX_QUEUES; q++) {
		reset_ring(&nic->rx[q], false, q);
		reset_ring(&nic->tx[q], true, q);
	}
	nic->gorc = 0;
	nic->gotc = 0;
	nic->held_irqs = 0;
	nic->is_link_up = false;
	nic->phy[PHY_CONTROL] = PHY_AN_ENABLE;
	nic->phy[2] = 0x0141; /* as in Marvell's PHYs, and QEMU's */
	nic->phy[3] = 0x0cb1;
	load_nvm(nic);
}

static void power_on(struct model *m)
{
	struct intel *nic = (struct intel *)m;

	reset_registers(nic);
	nic->was_reset = false;
	nic->reset_ns = 0;
}

static void start_link(struct intel *nic)
{
	nic->link_ns = model_now_ns(&nic->m) + nic->link_delay_ns;
}

static bool link_is_up(struct intel *nic)
{
	return !nic->m.faults.link_down &&
	       (*intel_reg(nic, REG_CTRL) & CTRL_SLU) &&
	       model_now_ns(&nic->m) >= nic->link_ns;
}

static void write_ctrl(struct intel *nic, uint32_t value)
{
	const bool was_slu = *intel_reg(nic, REG_CTRL) & CTRL_SLU;

	if (value & (CTRL_RST | CTRL_DEV_RST)) {
		reset_registers(nic);
		nic->was_reset = true;
		nic->reset_ns = model_now_ns(&nic->m);
		if (nic->m.faults.reset_never_ends)
			*intel_reg(nic, REG_CTRL) =
				value & (CTRL_RST | CTRL_DEV_RST);
		return;
	}
	*intel_reg(nic, REG_CTRL) = value & ~CTRL_PHY_RST;
	if (!was_slu && (value & CTRL_SLU))
		start_link(nic);
}

static uint32_t read_status(struct intel *nic)
{
	uint32_t value = STATUS_FD | STATUS_1000 | STATUS_LAN_INIT_DONE;

	if (link_is_up(nic))
		value |= STATUS_LU;
	if (!(*intel_reg(nic, REG_CTRL) & CTRL_GIO_MASTER_DISABLE))
		value |= STATUS_GIO_MASTER_EN;
	return value;
}

static void write_mdic(struct intel *nic, uint32_t value)
{
	const uint32_t reg = value >> 16 & 31, phy = value >> 21 & 31;
	uint32_t *mdic = intel_reg(nic, REG_MDIC);

	*mdic = (value & ~(MDIC_READ | MDIC_WRITE | 0xffffu)) | MDIC_READY;
	if (phy != 1) {
		*mdic |= MDIC_ERROR;
	} else if (value & MDIC_WRITE) {
		nic->phy[reg] = value & 0xffff & ~PHY_AN_RESTART;
		if (reg == PHY_CONTROL && (value & PHY_AN_RESTART))
			start_link(nic);
	} else if (value & MDIC_READ) {
		nic->phy[PHY_STATUS] = link_is_up(nic) ?
					       0x7949 | PHY_LINK | PHY_AN_DONE :
					       0x7949;
		*mdic |= nic->phy[reg];
	}
}

static void write_eerd(struct intel *nic, uint32_t value)
{
	const uint32_t at = value >> 2 & 0x3fff;
	uint32_t word = 0xffff; /* an empty cell */

	if (at < 3)
		word = nic->mac[2 * at] | (uint32_t)nic->mac[2 * at + 1] << 8;
	if (value & EERD_START)
		*intel_reg(nic, REG_EERD) = at << 2 | EERD_DONE | word << 16;
}

/* Registers that simply hold what was written. */
static bool is_plain(const struct intel *nic, uint32_t offset)
{
	static const uint32_t both[][2] = {
		{ 0x10, 0x10 },     { 0x18, 0x18 },     { 0x28, 0x38 },
		{ 0xc4, 0xc4 },     { 0x170, 0x170 },   { 0x400, 0x400 },
		{ 0x410, 0x410 },   { 0xf00, 0xf00 },   { 0x1000, 0x1000 },
		{ 0x3590, 0x3590 }, { 0x3840, 0x3840 }, { 0x3940, 0x3940 },
		{ 0x5000, 0x5008 }, { 0x5400, 0x547c }, { 0x5600, 0x57fc },
		{ 0x5800, 0x5818 }, { 0x5b00, 0x5b00 }, { 0x5b50, 0x5b5c },
		{ 0x5b64, 0x5b64 }, { 0x5c00, 0x5ca4 },
	};

	if (nic->chip->is_82574 ? offset == REG_RLPML || offset == 0x3590 :
				  offset == 0x5b64)
		return false;
	for (size_t i = 0; i < sizeof(both) / sizeof(both[0]); i++)
		if (offset >= both[i][0] && offset <= both[i][1])
			return true;
	return false;
}

/* Check what must be right when a direction is enabled. */
static void check_receive(struct intel *nic, uint32_t rctl)
{
	const uint32_t mrqc = *intel_reg(nic, REG_MRQC);
	uint32_t n_unwritten = 0;

	if (!(rctl & RCTL_EN) || (*intel_reg(nic, REG_RCTL) & RCTL_EN))
		return;
	for (uint32_t i = 0; i < 128; i++)
		n_unwritten += !(nic->mta_written[i / 32] >> i % 32 & 1);
	if (n_unwritten > 0)
		model_violation(&nic->m,
				"receive on, but %u words of MTA "
				"were not written",
				n_unwritten);
	if (nic->chip->is_82574 && !(*intel_reg(nic, REG_RFCTL) & RFCTL_EXTEN))
		model_violation(&nic->m, "receive on without bit 15 of RFCTL: "
					 "legacy descriptors");
	if ((mrqc & 7) != 0 && (mrqc & 7) != nic->chip->rss_mode)
		model_violation(&nic->m, "MRQC 0x%x: no mode of the %s", mrqc,
				nic->chip->name);
	if ((mrqc & 7) != 0 && !(*intel_reg(nic, REG_RXCSUM) & RXCSUM_PCSD))
		model_violation(&nic->m, "RSS without RXCSUM.PCSD: no hash");
}

static void check_transmit(struct intel *nic, uint32_t tctl)
{
	if (!(tctl & TCTL_EN) || !nic->chip->is_82574)
		return;
	if (!(nic->regs[(nic->tx[0].base + RING_CONTROL) / 4] &
	      TXDCTL_COUNT_DESC))
		model_violation(&nic->m, "TXDCTL without bit 22");
	if (!(*intel_reg(nic, REG_TARC0) & TARC0_BIT_26))
		model_violation(&nic->m, "TARC0 without bit 26");
}

static void check_quiet(struct intel *nic, uint32_t offset)
{
	if (nic->reset_ns == 0 ||
	    model_now_ns(&nic->m) - nic->reset_ns >= RESET_QUIET_NS)
		return;
	model_violation(&nic->m, "register 0x%x within 1 ms of a reset",
			offset);
}

static void write_plain(struct intel *nic, uint32_t offset, uint32_t value)
{
	if (offset == REG_RCTL)
		check_receive(nic, value);
	if (offset == REG_TCTL)
		check_transmit(nic, value);
	if (offset >= REG_MTA && offset < REG_MTA + 512) {
		const uint32_t i = (offset - REG_MTA) / 4;

		nic->mta_written[i / 32] |= 1u << i % 32;
	} else if (offset != REG_RCTL && !is_plain(nic, offset)) {
		model_violation(&nic->m,
				"write of 0x%x to 0x%x, which the %s "
				"does not have",
				value, offset, nic->chip->name);
	}
	*intel_reg(nic, offset) = value;
}

static void write_register(struct model *m, uint32_t bar, uint64_t offset64,
			   uint32_t n_bytes, uint64_t value64)
{
	struct intel *nic = (struct intel *)m;
	const uint32_t offset = (uint32_t)offset64, value = (uint32_t)value64;
	struct intel_ring *ring = find_ring(nic, offset);

	if (bar != 0 || n_bytes != 4) {
		model_violation(m, "write of %u bytes to BAR %u", n_bytes, bar);
		return;
	}
	check_quiet(nic, offset);
	if (ring != NULL)
		intel_ring_write(nic, ring, offset, value);
	else if (offset == REG_CTRL)
		write_ctrl(nic, value);
	else if (offset == REG_STATUS)
		return; /* the write only flushes */
	else if (offset == REG_MDIC)
		write_mdic(nic, value);
	else if (offset == REG_EERD)
		write_eerd(nic, value);
	else if (!intel_irq_write(nic, offset, value))
		write_plain(nic, offset, value);
}

static uint64_t read_register(struct model *m, uint32_t bar, uint64_t offset64,
			      uint32_t n_bytes)
{
	struct intel *nic = (struct intel *)m;
	const uint32_t offset = (uint32_t)offset64;
	struct intel_ring *ring = find_ring(nic, offset);
	uint32_t value = 0;

	if (bar != 0 || n_bytes != 4) {
		model_violation(m, "read of %u bytes of BAR %u", n_bytes, bar);
		return 0;
	}
	check_quiet(nic, offset);
	if (ring != NULL)
		return intel_ring_read(nic, ring, offset);
	if (offset == REG_STATUS)
		return read_status(nic);
	if (intel_irq_has(nic, offset))
		return intel_irq_read(nic, offset);
	if (intel_stat_read(nic, offset, &value))
		return value;
	return *intel_reg(nic, offset);
}

static void step_nic(struct model *m)
{
	struct intel *nic = (struct intel *)m;
	const bool is_up = link_is_up(nic);

	if (is_up != nic->is_link_up) {
		nic->is_link_up = is_up;
		intel_irq_other(nic, CAUSE_LSC);
	}
	if (!is_up && (*intel_reg(nic, REG_CTRL) & CTRL_SLU) &&
	    nic->link_ns > model_now_ns(m))
		model_wake_at(m, nic->link_ns);
	intel_tx_step(nic);
	intel_rx_step(nic);
	intel_irq_step(nic);
}

static const struct model_ops intel_ops = {
	.read = read_register,
	.write = write_register,
	.step = step_nic,
	.reset = power_on,
};

struct intel *intel_create(const struct intel_chip *chip, const uint8_t mac[6])
{
	const struct model_id id = {
		.vendor_id = 0x8086,
		.device_id = chip->device_id,
		.subsystem_vendor_id = 0x8086,
		.class_code = 0x020000,
		.revision = 1,
	};
	struct intel *nic = calloc(1, sizeof(*nic));

	if (nic == NULL)
		return NULL;
	model_init(&nic->m, &intel_ops, &id);
	nic->chip = chip;
	memcpy(nic->mac, mac, 6);
	nic->is_auto_rd = true;
	nic->enable_polls = 2;
	model_add_bar(&nic->m, 0, INTEL_BAR_BYTES);
	model_add_bar(&nic->m, 3, 0x4000);
	model_add_msix(&nic->m, chip->n_vectors, 3);
	model_add_pcie(&nic->m);
	power_on(&nic->m);
	return nic;
}

void intel_destroy(struct intel *nic)
{
	if (nic == NULL)
		return;
	model_deinit(&nic->m);
	free(nic);
}
