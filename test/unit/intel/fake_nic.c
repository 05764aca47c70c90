/* SPDX-License-Identifier: BSD-3-Clause */
#include <time.h>

#include "fake_nic.h"

/* In place of the C library's: the device needs no time. */
static uint64_t slept_ns;

int nanosleep(const struct timespec *request, struct timespec *remaining)
{
	(void)remaining;
	slept_ns += (uint64_t)request->tv_sec * 1000000000 +
		    (uint64_t)request->tv_nsec;
	return 0;
}

uint64_t fake_slept_ms(void)
{
	return slept_ns / 1000000;
}

static uint64_t reg_read(void *device, uint32_t bar, uint64_t offset,
			 uint32_t n_bytes)
{
	struct fake_nic *nic = device;
	uint32_t value;

	assert_int_equal(bar, 0);
	assert_int_equal(n_bytes, 4);
	assert_true(offset < FAKE_BAR_BYTES);
	value = nic->regs[offset / 4];
	if (nic->pci.is_gone)
		return UINT32_MAX;
	if (offset == INTEL_STATUS)
		value |= nic->has_link ? INTEL_STATUS_LU : 0;
	if (offset == INTEL_EECD)
		value |= INTEL_EECD_AUTO_RD;
	if (offset == INTEL_MDIC)
		value |= INTEL_MDIC_READY;
	/* Statistics are cleared by reading. */
	if (offset >= 0x4000 && offset < 0x4100)
		nic->regs[offset / 4] = 0;
	if (nic->read_hook_offset != 0 && offset == nic->read_hook_offset)
		nic->hook(nic->hook_opaque);
	return value;
}

static void reg_write(void *device, uint32_t bar, uint64_t offset,
		      uint32_t n_bytes, uint64_t value)
{
	struct fake_nic *nic = device;

	assert_int_equal(bar, 0);
	assert_int_equal(n_bytes, 4);
	assert_true(offset < FAKE_BAR_BYTES);
	if (nic->pci.is_gone) {
		assert_true(nic->takes_writes);
		return;
	}
	if (nic->n_writes < FAKE_MAX_WRITES) {
		nic->offsets[nic->n_writes] = (uint32_t)offset;
		nic->values[nic->n_writes++] = (uint32_t)value;
	}
	if (offset == INTEL_CTRL && nic->has_reset)
		value &= ~(uint64_t)INTEL_CTRL_RST;
	if (offset == INTEL_EXTCNF_CTRL && nic->n_mdio_refused > 0 &&
	    (value & INTEL_EXTCNF_CTRL_MDIO_SW)) {
		nic->n_mdio_refused--;
		value &= ~(uint64_t)INTEL_EXTCNF_CTRL_MDIO_SW;
	}
	for (uint32_t q = 0; q < INTEL_MAX_QUEUES && !nic->has_queues; q++)
		if (offset == intel_rx_ring(q) + INTEL_DCTL ||
		    offset == intel_tx_ring(q) + INTEL_DCTL)
			value &= ~(uint64_t)INTEL_DCTL_ENABLE;
	nic->regs[offset / 4] = (uint32_t)value;
	if (nic->hook_offset != 0 && offset == nic->hook_offset)
		nic->hook(nic->hook_opaque);
}

static int map_bar(void *device, uint32_t idx, struct mr_bar *ret_bar,
		   struct mr_reason *reterr_reason)
{
	static const struct mr_bar_ops ops = { reg_read, reg_write };

	(void)reterr_reason;
	assert_int_equal(idx, 0);
	*ret_bar = (struct mr_bar){ .n_bytes = FAKE_BAR_BYTES,
				    .ops = &ops,
				    .device = device };
	return 0;
}

static struct mr_pci_backend backend;

/* In the table of a build; test/mutation has a table of its own. */
extern const struct mr_driver mr_driver_intel;

void fake_prepare(struct fake *fake, struct fake_config config)
{
	const uint16_t id =
		config.device_id != 0 ? config.device_id : FAKE_82576;
	struct fake_nic *nic = &fake->nic;

	memset(fake, 0, sizeof(*fake));
	fixture_open_with(&fake->f,
			  (struct mr_pool_config){
				  .n_pages = FAKE_PAGES,
				  .page_bytes = config.page_bytes,
				  .chunk_bytes = config.chunk_bytes,
				  .headroom_bytes = config.headroom_bytes,
				  .tailroom_bytes = config.tailroom_bytes });
	fake->cache = fake->f.cache;
	soft_init(&nic->pci);
	memcpy(nic->pci.config + 2, &id, sizeof(id));
	nic->has_reset = nic->has_link = nic->has_queues = true;
	*fake_reg(fake, INTEL_RAL) = 0x03020052;
	*fake_reg(fake, INTEL_RAH) = INTEL_RAH_AV | 0x0504;
	(void)mr_ctx_add_driver(fake->f.ctx, &mr_driver_intel);
	backend = soft_backend;
	backend.map_bar = map_bar;
	assert_int_equal(
		mr_ctx_add_pci_device(fake->f.ctx, "nic", &backend, nic), 0);
}

int fake_try(struct fake *fake, const char *options, struct mr_reason *reason)
{
	const struct mr_port_config config = { .size = sizeof(config),
					       .pool = fake->f.pool };
	char spec[256];
	int err;

	snprintf(spec, sizeof(spec), "vfio:nic,rx-ring=%u,tx-ring=%u%s%s",
		 FAKE_RING, FAKE_RING, options != NULL ? "," : "",
		 options != NULL ? options : "");
	err = mr_port_open(fake->f.ctx, spec, &config, &fake->port, reason);
	if (err < 0)
		return err;
	fake->intel = (struct intel_port *)fake->port;
	fake->rxq = mr_port_rxq(fake->port, 0);
	fake->txq = mr_port_txq(fake->port, 0);
	return 0;
}

void fake_open(struct fake *fake, struct fake_config config)
{
	struct mr_reason reason;

	fake_prepare(fake, config);
	if (fake_try(fake, config.options, &reason) < 0)
		fail_msg("%s", reason.text);
}

void fake_close(struct fake *fake)
{
	mr_port_close(fake->port);
	assert_int_equal(soft_n_mapped(&fake->nic.pci), 0);
	assert_int_equal(fake->nic.pci.n_opens, fake->nic.pci.n_closes);
	if (!fake->nic.pci.is_gone)
		assert_false(soft_command(&fake->nic.pci) & SOFT_MASTER);
	fixture_close(&fake->f);
}

static struct intel_desc *desc_at(struct fake *fake, uint32_t ring,
				  uint32_t place)
{
	const uint64_t iova = *fake_reg(fake, ring + INTEL_DBAL) |
			      (uint64_t)*fake_reg(fake, ring + INTEL_DBAH)
				      << 32;
	struct intel_desc *desc = soft_reach(
		&fake->nic.pci, iova + place * sizeof(struct intel_desc));

	assert_non_null(desc);
	return desc;
}

static uint32_t ring_size(struct fake *fake, uint32_t ring)
{
	return *fake_reg(fake, ring + INTEL_DLEN) /
	       (uint32_t)sizeof(struct intel_desc);
}

void fake_receive_on(struct fake *fake, uint32_t q, uint64_t low,
		     uint32_t status, uint32_t n_bytes, uint16_t vlan)
{
	const uint32_t ring = intel_rx_ring(q);
	uint32_t *head = &fake->nic.rx_head[q];
	struct intel_desc *desc = desc_at(fake, ring, *head);
	uint8_t *buffer;

	/* The device has a descriptor, and it was cleared. */
	assert_int_not_equal(*head, *fake_reg(fake, ring + INTEL_DT));
	assert_int_equal(desc->words[1], 0);
	buffer = soft_reach(&fake->nic.pci, desc->words[0]);
	assert_non_null(buffer);
	memset(buffer, 0x5a, n_bytes < 1024 ? n_bytes : 1024);
	desc->words[0] = low;
	desc->words[1] = status | INTEL_RX_DD |
			 (uint64_t)n_bytes << INTEL_RX_LENGTH_SHIFT |
			 (uint64_t)vlan << INTEL_RX_VLAN_SHIFT;
	*head = (*head + 1) % ring_size(fake, ring);
}

uint32_t fake_take(struct fake *fake, uint32_t n)
{
	const uint32_t ring = intel_tx_ring(0);
	const uint32_t tail = *fake_reg(fake, ring + INTEL_DT);
	uint32_t *head = &fake->nic.tx_head[0];
	uint32_t n_taken = 0;

	for (; n_taken < n && *head != tail; n_taken++) {
		assert_true(fake->n_sent < FAKE_MAX_SENT);
		fake->sent[fake->n_sent++] = *desc_at(fake, ring, *head);
		*head = (*head + 1) % ring_size(fake, ring);
	}
	return n_taken;
}

uint32_t fake_send(struct fake *fake)
{
	const uint32_t ring = intel_tx_ring(0);
	const uint32_t wb = *fake_reg(fake, ring + INTEL_TDWBAL);
	uint32_t n_sent = 0;

	for (;;) {
		const uint32_t place = fake->nic.tx_head[0];

		if (fake_take(fake, 1) == 0)
			return n_sent;
		n_sent++;
		if (!(fake->sent[fake->n_sent - 1].words[1] & INTEL_TX_RS))
			continue;
		if (wb & INTEL_TDWBAL_EN)
			*(uint32_t *)soft_reach(
				&fake->nic.pci,
				(wb & ~3u) | (uint64_t)*fake_reg(
						     fake, ring + INTEL_TDWBAH)
						     << 32) =
				fake->nic.tx_head[0];
		else
			desc_at(fake, ring, place)->words[1] |=
				UINT64_C(1) << INTEL_TX_DD_SHIFT;
	}
}

uint32_t fake_find_write(const struct fake *fake, uint32_t i, uint32_t offset)
{
	for (; i < fake->nic.n_writes; i++)
		if (fake->nic.offsets[i] == offset)
			return i;
	fail_msg("0x%x was not written", offset);
	return 0;
}
