/* SPDX-License-Identifier: BSD-3-Clause */
/* The device on the bus: 4.1 of the specification. */
#include <string.h>

#include "virtio_core.h"

/* What lies where. Doorbells have a BAR of their own. */
enum {
	MSIX_BAR = 1,
	NOTIFY_BAR = 2,
	BAR = 4,
	COMMON = 0,
	COMMON_BYTES = 0x40,
	ISR = 0x1000,
	DEVICE = 0x2000,
	DEVICE_BYTES = 24,
	BAR_BYTES = 0x4000,
	NOTIFY = 0x100,

	CAP_COMMON = 1,
	CAP_NOTIFY = 2,
	CAP_ISR = 3,
	CAP_DEVICE = 4,
	CAP_UNKNOWN = 0x42,

	LINK_UP = 1,
	ANNOUNCE = 2,
};

struct cap {
	uint8_t type, bar, n_bytes;
	uint32_t offset, length;
	uint32_t multiplier;
};

static uint32_t multiplier_of(const struct vnet *v)
{
	if (v->config.one_doorbell)
		return 0;
	return v->config.multiplier != 0 ? v->config.multiplier : 4;
}

static uint32_t n_queues(const struct vnet *v)
{
	return 2 * v->config.n_pairs + 1;
}

/* What each kind of hostility changes in the capability of a type. */
static void spoil_cap(enum vnet_caps kind, struct cap *cap)
{
	static const struct {
		uint8_t type, bar;
		uint32_t offset, length;
	} changes[VNET_N_CAPS] = {
		[VNET_CAPS_NO_COMMON] = { CAP_COMMON, BAR, 0, 0 },
		[VNET_CAPS_NO_NOTIFY] = { CAP_NOTIFY, BAR, 0, 0 },
		[VNET_CAPS_NO_DEVICE] = { CAP_DEVICE, BAR, 0, 0 },
		[VNET_CAPS_BAR_6] = { CAP_COMMON, 6, COMMON, COMMON_BYTES },
		[VNET_CAPS_BAR_EMPTY] = { CAP_COMMON, 3, COMMON, COMMON_BYTES },
		[VNET_CAPS_BEYOND_BAR] = { CAP_COMMON, BAR, BAR_BYTES - 8,
					   COMMON_BYTES },
		[VNET_CAPS_OVERFLOW] = { CAP_COMMON, BAR, 0xfffffff0u,
					 COMMON_BYTES },
		[VNET_CAPS_OLD] = { CAP_COMMON, BAR, COMMON, 0x38 },
		[VNET_CAPS_SHORT] = { CAP_COMMON, BAR, COMMON, 8 },
	};

	if (kind == VNET_CAPS_MULTIPLIER && cap->type == CAP_NOTIFY)
		cap->multiplier = 0x10000000;
	if (kind == VNET_CAPS_CUT_OFF && cap->type == CAP_COMMON)
		cap->n_bytes = 2;
	if (changes[kind].type != cap->type)
		return;
	cap->bar = changes[kind].bar;
	cap->offset = changes[kind].offset;
	cap->length = changes[kind].length;
	if (cap->length == 0)
		cap->type = CAP_UNKNOWN;
}

/* A virtio_pci_cap behind its id and the pointer to the next. */
static void add_cap(struct vnet *v, const struct cap *cap)
{
	uint8_t body[18] = { cap->n_bytes, cap->type, cap->bar };

	vnet_put32(body + 6, cap->offset);
	vnet_put32(body + 10, cap->length);
	vnet_put32(body + 14, cap->multiplier);
	model_add_cap(&v->model, 0x09, body, sizeof(body));
}

/* There is no PCI_CFG among them, a window for hosts that map no BAR. */
void vnet_add_caps(struct vnet *v)
{
	const enum vnet_caps kind = v->config.caps;
	const struct cap caps[] = {
		{ CAP_UNKNOWN, 7, 16, 0xdeadbeef, 0xdeadbeef, 0 },
		{ CAP_COMMON, BAR, 16, COMMON, COMMON_BYTES, 0 },
		{ CAP_ISR, BAR, 16, ISR, 1, 0 },
		{ CAP_DEVICE, BAR, 16, DEVICE, DEVICE_BYTES, 0 },
		{ CAP_NOTIFY, NOTIFY_BAR, 20, NOTIFY,
		  multiplier_of(v) * (n_queues(v) - 1) + 4, multiplier_of(v) },
		/* Of several of a type the first that is good is taken. */
		{ CAP_COMMON, BAR, 16, ISR, 16, 0 },
	};
	static const struct cap unusable[] = {
		{ CAP_COMMON, 7, 16, COMMON, COMMON_BYTES, 0 },
		{ CAP_ISR, 3, 16, ISR, 1, 0 },
		{ CAP_NOTIFY, 3, 20, 0, 64, 2 },
	};
	const uint32_t first = kind == VNET_CAPS_UNKNOWN ? 0 : 1;
	const uint32_t last = kind == VNET_CAPS_TWICE ? 5 : 4;

	model_add_bar(&v->model, MSIX_BAR, 0x4000);
	model_add_bar(&v->model, NOTIFY_BAR, 0x4000);
	model_add_bar(&v->model, BAR, BAR_BYTES);
	model_add_msix(&v->model, v->config.n_vectors, MSIX_BAR);
	for (uint32_t i = 0; i < 3 && kind == VNET_CAPS_UNUSABLE; i++)
		add_cap(v, &unusable[i]);
	for (uint32_t i = first; i <= last; i++) {
		struct cap cap = caps[i];

		spoil_cap(kind, &cap);
		add_cap(v, &cap);
	}
	if (kind == VNET_CAPS_LOOP)
		v->model.config[v->model.last_cap + 1] = v->model.config[0x34];
	if (kind == VNET_CAPS_NO_LIST)
		v->model.config[6] &= (uint8_t)~0x10u;
}

void vnet_irq(struct vnet *v, uint16_t vector, uint8_t isr_bit)
{
	v->isr |= isr_bit;
	if (vector != VNET_NO_VECTOR)
		model_irq(&v->model, vector);
}

void vnet_config_changed(struct vnet *v)
{
	if (v->faults.generation_lags)
		v->has_unread_change = true;
	else
		v->generation++;
	if ((v->status & VNET_DRIVER_OK) != 0)
		vnet_irq(v, v->config_vector, 2);
}

void vnet_break(struct vnet *v)
{
	v->status |= VNET_NEEDS_RESET;
	vnet_config_changed(v);
}

/* The fields of the device's configuration: 5.1.4. */
static void fill_device(struct vnet *v, uint8_t *bytes)
{
	if (v->faults.link_flaps)
		v->link_is_up = !v->link_is_up;
	memset(bytes, 0, DEVICE_BYTES);
	memcpy(bytes, v->config.mac, 6);
	vnet_put16(bytes + 6, (v->link_is_up ? LINK_UP : 0) |
				      (v->wants_announcement ? ANNOUNCE : 0));
	vnet_put16(bytes + 8, (uint16_t)v->config.n_pairs);
	vnet_put16(bytes + 10, v->config.mtu_bytes);
	vnet_put32(bytes + 12, 10000);
	bytes[16] = 1; /* full duplex */
	bytes[17] = VNET_KEY_BYTES;
	vnet_put16(bytes + 18, v->config.rss_table != 0 ? v->config.rss_table :
							  VNET_MAX_TABLE);
	vnet_put32(bytes + 20, 0x3f);
}

static uint64_t read_device(struct vnet *v, uint64_t offset, uint32_t n_bytes)
{
	uint8_t bytes[DEVICE_BYTES + 8] = { 0 };

	if (offset + n_bytes > DEVICE_BYTES || offset % n_bytes != 0) {
		model_violation(&v->model,
				"device configuration: %u bytes "
				"read at %#x",
				n_bytes, (unsigned)offset);
		return 0;
	}
	v->generation += v->has_unread_change;
	v->has_unread_change = false;
	fill_device(v, bytes);
	return vnet_get64(bytes + offset);
}

static uint64_t masked(uint64_t value, uint32_t n_bytes)
{
	return n_bytes >= 8 ? value :
			      value & ((UINT64_C(1) << 8 * n_bytes) - 1);
}

uint64_t vnet_read(struct model *model, uint32_t bar, uint64_t offset,
		   uint32_t n_bytes)
{
	struct vnet *v = vnet_of(model);
	uint64_t value = 0;

	if (bar == BAR && offset < COMMON_BYTES) {
		value = vnet_read_common(v, offset, n_bytes);
	} else if (bar == BAR && offset == ISR) {
		value = v->isr;
		v->isr = 0; /* by reading */
	} else if (bar == BAR && offset >= DEVICE) {
		value = read_device(v, offset - DEVICE, n_bytes);
	} else {
		model_violation(model, "BAR %u: read at %#x", bar,
				(unsigned)offset);
	}
	return masked(value, n_bytes);
}

static void notify(struct vnet *v, uint64_t offset, uint32_t n_bytes,
		   uint32_t value)
{
	const uint32_t n_expected = vnet_has(v, VNET_NOTIFICATION_DATA) ? 4 : 2;
	const uint16_t idx = (uint16_t)(value - vnet_notify_data(v, 0));
	struct vnet_queue *q;

	if ((v->status & VNET_DRIVER_OK) == 0) {
		model_violation(&v->model, "a doorbell before DRIVER_OK");
		return;
	}
	if (idx >= n_queues(v) || !v->queues[idx].is_enabled) {
		model_violation(&v->model,
				"a doorbell of queue %u, which is "
				"not enabled",
				idx);
		return;
	}
	q = &v->queues[idx];
	if (n_bytes != n_expected ||
	    offset != NOTIFY + (uint64_t)vnet_notify_off(v, idx) *
				       multiplier_of(v))
		model_violation(&v->model,
				"queue %u: doorbell of %u bytes at "
				"%#x",
				idx, n_bytes, (unsigned)offset);
	if (!v->model.was_master)
		model_violation(&v->model, "a doorbell before bus mastering");
	v->stats.n_doorbells++;
	v->counts[idx].n_doorbells++;
	q->is_kicked = true;
	if (!vnet_is_running(v) || !vnet_queue_map(v, q))
		return;
	if (n_bytes == 4)
		vnet_layout(v)->doorbell(v, q, (uint16_t)(value >> 16));
	/* Else the write of the register is followed by a step. */
	if (v->model.is_lazy && q == vnet_ctrl_queue(v))
		vnet_step_ctrl(v, q);
	else if (v->model.is_lazy && q->idx % 2 == 0)
		vnet_step_rx(v);
}

void vnet_write(struct model *model, uint32_t bar, uint64_t offset,
		uint32_t n_bytes, uint64_t value)
{
	struct vnet *v = vnet_of(model);

	if (bar == BAR && offset < COMMON_BYTES)
		vnet_write_common(v, offset, n_bytes, masked(value, n_bytes));
	else if (bar == NOTIFY_BAR)
		notify(v, offset, n_bytes, (uint32_t)value);
	else
		model_violation(model, "BAR %u: write at %#x", bar,
				(unsigned)offset);
}

/* What a doorbell names the queue by: its index, or what the device says. */
uint16_t vnet_notify_data(const struct vnet *v, uint16_t idx)
{
	return vnet_has(v, VNET_NOTIF_CONFIG_DATA) ? 0x1000 + idx : idx;
}

/* Not the index of the queue: a driver has to read it. */
uint16_t vnet_notify_off(const struct vnet *v, uint16_t idx)
{
	return (uint16_t)(n_queues(v) - 1 - idx);
}
