/* SPDX-License-Identifier: BSD-3-Clause */
#include "held_nic.h"
#include "model/intel.h"
#include "model/intel_regs.h"

enum { EXTCNF_CTRL = 0xf00, MDIO_SW = 1 << 5, RXD_BYTES_SHIFT = 32 };

struct held held;
static const struct model_ops *honest;

static struct intel *nic_of(void)
{
	return (struct intel *)held.harness.m;
}

/* The hook may use the device. */
static void call_hook(struct model *m)
{
	model_unlock(m);
	held.hook();
	model_lock(m);
}

static uint64_t read_register(struct model *m, uint32_t bar, uint64_t offset,
			      uint32_t n_bytes)
{
	const uint64_t value = honest->read(m, bar, offset, n_bytes);

	if (held.read_hook_offset != 0 && offset == held.read_hook_offset)
		call_hook(m);
	return value;
}

static void write_register(struct model *m, uint32_t bar, uint64_t offset,
			   uint32_t n_bytes, uint64_t value)
{
	honest->write(m, bar, offset, n_bytes, value);
	if (held.n_writes < HELD_MAX_WRITES) {
		held.offsets[held.n_writes] = (uint32_t)offset;
		held.values[held.n_writes++] = (uint32_t)value;
	}
	if (offset == EXTCNF_CTRL && (value & MDIO_SW) != 0 &&
	    held.n_mdio_refused > 0) {
		held.n_mdio_refused--;
		*intel_reg((struct intel *)m, EXTCNF_CTRL) &=
			~(uint32_t)MDIO_SW;
	}
	if (held.hook_offset != 0 && offset == held.hook_offset)
		call_hook(m);
}

void held_prepare(struct held_config config)
{
	static const uint8_t mac[6] = { 0x52, 0, 2, 3, 4, 5 };
	static struct model_ops ops;
	const struct intel_chip *chip =
		config.device_id == HELD_82574 ? &chip_82574l :
		config.device_id == HELD_I210  ? &chip_i210 :
						 &chip_82576;
	struct intel *nic = intel_create(chip, mac);

	memset(&held, 0, sizeof(held));
	assert_true(nic != NULL);
	honest = nic->m.ops;
	ops = *honest;
	ops.read = read_register;
	ops.write = write_register;
	nic->m.ops = &ops;
	nic->m.is_lazy = true;
	if (config.device_id != 0)
		memcpy(&nic->m.config[2], &config.device_id, 2);
	harness_begin(&held.harness, &nic->m,
		      (struct mr_pool_config){
			      .n_pages = config.n_pages,
			      .page_bytes = config.page_bytes,
			      .tailroom_bytes = config.tailroom_bytes },
		      NULL);
	held.backend = *model_backend();
	assert_int_equal(mr_ctx_add_pci_device(held.harness.ctx, "held",
					       &held.backend, &nic->m),
			 0);
}

int held_try(const char *options, struct mr_reason *reason)
{
	char spec[256];
	int err;

	snprintf(spec, sizeof(spec), "rx-ring=%u,tx-ring=%u%s%s", HELD_RING,
		 HELD_RING, options != NULL ? "," : "",
		 options != NULL ? options : "");
	err = harness_try_open_as(&held.harness, "held", spec, reason);
	if (err < 0)
		return err;
	held.intel = (struct intel_port *)held.harness.port;
	model_step(held.harness.m); /* the link is up */
	return 0;
}

void held_open(struct held_config config)
{
	struct mr_reason why = { "" };

	held_prepare(config);
	if (held_try(config.options, &why) < 0)
		fail_msg("%s", why.text);
}

void held_close(void)
{
	struct model *m = held.harness.m;

	mr_port_close(held.harness.port);
	held.harness.port = NULL;
	/* A device that is gone cannot be silenced. */
	if (m->faults.all_ones && m->n_violations == 1 &&
	    strcmp(model_violations(m), "closed while bus master is on\n") == 0)
		model_forgive(m);
	harness_close(&held.harness);
	intel_destroy(nic_of());
	model_wire_destroy(held.harness.wire);
}

uint32_t *held_reg(uint32_t offset)
{
	return intel_reg(nic_of(), offset);
}

void held_set_vectors(uint32_t n)
{
	static struct intel_chip chip;
	uint8_t *cap = held.harness.m->config + held.harness.m->config[0x34];

	assert_int_equal(*cap, 0x11); /* MSI-X comes first */
	cap[2] = (uint8_t)(n - 1);
	held.harness.m->n_vectors = n;
	chip = *nic_of()->chip;
	chip.n_vectors = INTEL_MAX_VECTORS;
	nic_of()->chip = &chip;
}

void held_set_mac(const uint8_t mac[6])
{
	memcpy(nic_of()->mac, mac, 6);
}

void held_stop_queues(void)
{
	nic_of()->enable_polls = UINT32_MAX;
}

void held_set_gone(bool is_gone)
{
	held.harness.m->faults.all_ones = is_gone;
}

void held_set_link(bool is_up)
{
	held.harness.m->faults.link_down = !is_up;
	model_step(held.harness.m);
}

void held_receive(uint64_t low, uint32_t status, uint32_t n_bytes,
		  uint16_t vlan)
{
	struct intel *nic = nic_of();
	struct intel_ring *ring = &nic->rx[0];
	struct intel_desc *desc = intel_desc_at(nic, ring, ring->head);
	const uint64_t iova = ring->given[ring->head].low;

	/* The device owns a descriptor, which is unchanged. */
	assert_int_not_equal(ring->head, ring->tail);
	assert_true(intel_desc_is_kept(nic, ring, ring->head, desc));
	memset(model_dma(held.harness.m, iova, 1024), 0x5a,
	       n_bytes < 1024 ? n_bytes : 1024);
	desc->low = low;
	desc->high = status | RXD_DD | (uint64_t)n_bytes << RXD_BYTES_SHIFT |
		     (uint64_t)vlan << 48;
	intel_disown(nic, iova);
	ring->head = (ring->head + 1) % ring->n;
}

void held_set_drops(uint32_t q, uint32_t n)
{
	nic_of()->rx[q].drops = n;
}

void held_set_bytes(uint64_t n)
{
	nic_of()->gorc = n;
}
