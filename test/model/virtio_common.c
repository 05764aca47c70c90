/* SPDX-License-Identifier: BSD-3-Clause */
/* The common configuration: 4.1.4.3, and in what order it is used: 3.1. */
#include <string.h>

#include "virtio_core.h"

enum reg {
	DEVICE_FEATURE_SELECT = 0x00,
	DEVICE_FEATURE = 0x04,
	DRIVER_FEATURE_SELECT = 0x08,
	DRIVER_FEATURE = 0x0c,
	CONFIG_MSIX_VECTOR = 0x10,
	NUM_QUEUES = 0x12,
	DEVICE_STATUS = 0x14,
	CONFIG_GENERATION = 0x15,
	QUEUE_SELECT = 0x16,
	QUEUE_SIZE = 0x18,
	QUEUE_MSIX_VECTOR = 0x1a,
	QUEUE_ENABLE = 0x1c,
	QUEUE_NOTIFY_OFF = 0x1e,
	QUEUE_DESC = 0x20,
	QUEUE_DRIVER = 0x28,
	QUEUE_DEVICE = 0x30,
	QUEUE_NOTIF_CONFIG_DATA = 0x38,
	QUEUE_RESET = 0x3a,
};

/* Width of the register that begins at @p offset, 0: none does. */
static uint32_t width_of(uint64_t offset)
{
	switch (offset) {
	case DEVICE_STATUS:
	case CONFIG_GENERATION:
		return 1;
	case DEVICE_FEATURE_SELECT:
	case DEVICE_FEATURE:
	case DRIVER_FEATURE_SELECT:
	case DRIVER_FEATURE:
	case QUEUE_DESC: /* 64 bits are two accesses of 32 */
	case QUEUE_DESC + 4:
	case QUEUE_DRIVER:
	case QUEUE_DRIVER + 4:
	case QUEUE_DEVICE:
	case QUEUE_DEVICE + 4:
		return 4;
	case CONFIG_MSIX_VECTOR:
	case NUM_QUEUES:
	case QUEUE_SELECT:
	case QUEUE_SIZE:
	case QUEUE_MSIX_VECTOR:
	case QUEUE_ENABLE:
	case QUEUE_NOTIFY_OFF:
	case QUEUE_NOTIF_CONFIG_DATA:
	case QUEUE_RESET:
		return 2;
	default:
		return 0;
	}
}

static bool access_is_right(struct vnet *v, uint64_t offset, uint32_t n_bytes,
			    const char *what)
{
	if (width_of(offset) == n_bytes)
		return true;
	model_violation(&v->model,
			"common configuration: %s of %u bytes at "
			"%#x",
			what, n_bytes, (unsigned)offset);
	return false;
}

/* NULL: there is no such queue. */
static struct vnet_queue *selected(struct vnet *v)
{
	return v->queue_select <= 2 * v->config.n_pairs ?
		       &v->queues[v->queue_select] :
		       NULL;
}

static uint8_t read_status(struct vnet *v)
{
	if (v->n_reset_reads > 0) {
		v->n_reset_reads--;
		return VNET_ACKNOWLEDGE;
	}
	if (v->model.faults.reset_never_ends)
		return v->status | VNET_ACKNOWLEDGE;
	return v->status;
}

static uint64_t read_queue(struct vnet *v, uint64_t offset)
{
	struct vnet_queue *q = selected(v);

	if (q == NULL)
		return offset == QUEUE_MSIX_VECTOR ? VNET_NO_VECTOR : 0;
	switch (offset) {
	case QUEUE_SIZE:
		if (v->faults.queues_missing)
			return 0;
		return q->size != 0 ? q->size : v->config.queue_size;
	case QUEUE_MSIX_VECTOR:
		return q->vector;
	case QUEUE_ENABLE:
		return q->is_enabled;
	case QUEUE_NOTIFY_OFF:
		return vnet_notify_off(v, q->idx);
	case QUEUE_NOTIF_CONFIG_DATA:
		return vnet_notify_data(v, q->idx);
	case QUEUE_RESET:
		q->is_resetting &= v->faults.queue_reset_hangs;
		return q->is_resetting;
	case QUEUE_DESC:
		return q->desc;
	case QUEUE_DRIVER:
		return q->driver;
	case QUEUE_DEVICE:
		return q->device;
	case QUEUE_DESC + 4:
		return q->desc >> 32;
	case QUEUE_DRIVER + 4:
		return q->driver >> 32;
	default:
		return q->device >> 32;
	}
}

uint64_t vnet_read_common(struct vnet *v, uint64_t offset, uint32_t n_bytes)
{
	if (!access_is_right(v, offset, n_bytes, "read"))
		return 0;
	switch (offset) {
	case DEVICE_FEATURE_SELECT:
		return v->feature_select[0];
	case DEVICE_FEATURE:
		return v->feature_select[0] < 2 ?
			       v->config.features >> 32 * v->feature_select[0] :
			       0;
	case DRIVER_FEATURE_SELECT:
		return v->feature_select[1];
	case DRIVER_FEATURE:
		return v->feature_select[1] < 2 ?
			       v->driver_features >> 32 * v->feature_select[1] :
			       0;
	case CONFIG_MSIX_VECTOR:
		return v->config_vector;
	case NUM_QUEUES:
		return 2 * v->config.n_pairs + 1;
	case DEVICE_STATUS:
		return read_status(v);
	case CONFIG_GENERATION:
		v->generation +=
			v->faults.generation_changes || v->faults.link_flaps;
		return v->generation;
	case QUEUE_SELECT:
		return v->queue_select;
	default:
		return read_queue(v, offset);
	}
}

/* Each of these features means nothing without one of the others: 5.1.3.1. */
bool vnet_features_are_whole(uint64_t features)
{
	static const struct {
		uint8_t feature;
		uint64_t needs_one_of;
	} rules[] = {
		{ VNET_GUEST_TSO4, VNET_BIT(VNET_GUEST_CSUM) },
		{ VNET_GUEST_TSO6, VNET_BIT(VNET_GUEST_CSUM) },
		{ VNET_GUEST_UFO, VNET_BIT(VNET_GUEST_CSUM) },
		{ VNET_GUEST_USO4, VNET_BIT(VNET_GUEST_CSUM) },
		{ VNET_GUEST_USO6, VNET_BIT(VNET_GUEST_CSUM) },
		{ VNET_GUEST_ECN,
		  VNET_BIT(VNET_GUEST_TSO4) | VNET_BIT(VNET_GUEST_TSO6) },
		{ VNET_HOST_TSO4, VNET_BIT(VNET_CSUM) },
		{ VNET_HOST_TSO6, VNET_BIT(VNET_CSUM) },
		{ VNET_HOST_UFO, VNET_BIT(VNET_CSUM) },
		{ VNET_HOST_USO, VNET_BIT(VNET_CSUM) },
		{ VNET_HOST_ECN,
		  VNET_BIT(VNET_HOST_TSO4) | VNET_BIT(VNET_HOST_TSO6) },
		{ VNET_CTRL_RX, VNET_BIT(VNET_CTRL_VQ) },
		{ VNET_CTRL_RX_EXTRA, VNET_BIT(VNET_CTRL_VQ) },
		{ VNET_CTRL_GUEST_OFFLOADS, VNET_BIT(VNET_CTRL_VQ) },
		{ VNET_GUEST_ANNOUNCE, VNET_BIT(VNET_CTRL_VQ) },
		{ VNET_MQ, VNET_BIT(VNET_CTRL_VQ) },
		{ VNET_DEVICE_STATS, VNET_BIT(VNET_CTRL_VQ) },
		{ VNET_CTRL_MAC_ADDR, VNET_BIT(VNET_CTRL_VQ) },
		{ VNET_NOTF_COAL, VNET_BIT(VNET_CTRL_VQ) },
		{ VNET_VQ_NOTF_COAL, VNET_BIT(VNET_CTRL_VQ) },
		{ VNET_RSS, VNET_BIT(VNET_CTRL_VQ) },
		{ VNET_HASH_REPORT, VNET_BIT(VNET_CTRL_VQ) },
	};

	for (uint32_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if ((features >> rules[i].feature & 1) != 0 &&
		    (features & rules[i].needs_one_of) == 0)
			return false;
	return true;
}

/* Whether FEATURES_OK may stay. */
static bool accept_features(struct vnet *v)
{
	const uint64_t f = v->driver_features;
	const uint64_t needed =
		VNET_BIT(VNET_VERSION_1) |
		(v->config.features & VNET_BIT(VNET_ACCESS_PLATFORM));

	if (v->faults.refuses_features) {
		v->stats.n_faults++;
		return false;
	}
	if ((f & ~v->config.features) != 0)
		model_violation(&v->model,
				"features taken that were not "
				"offered: %#llx",
				(unsigned long long)(f & ~v->config.features));
	else if (!vnet_features_are_whole(f))
		model_violation(&v->model, "features that need others: %#llx",
				(unsigned long long)f);
	else if ((f & needed) != needed)
		model_violation(&v->model, "VERSION_1 or ACCESS_PLATFORM was "
					   "not taken");
	else
		return true;
	return false;
}

/* 3.1.1: one step after the other, and no bit is taken back but by reset. */
static void write_status(struct vnet *v, uint8_t status)
{
	const uint8_t kept = v->status & (uint8_t)~VNET_NEEDS_RESET;
	const uint8_t news = status & (uint8_t)~v->status;

	if (status == 0) {
		vnet_reset(&v->model);
		return;
	}
	if ((status & kept) != kept)
		model_violation(&v->model, "status %#x clears bits of %#x",
				status, v->status);
	if ((status & VNET_FAILED) != 0) {
		v->status |= VNET_FAILED;
		return;
	}
	if (((news & VNET_DRIVER) != 0 && (status & VNET_ACKNOWLEDGE) == 0) ||
	    ((news & VNET_FEATURES_OK) != 0 &&
	     (v->status & VNET_DRIVER) == 0) ||
	    ((news & VNET_DRIVER_OK) != 0 &&
	     (v->status & VNET_FEATURES_OK) == 0))
		model_violation(&v->model, "status %#x follows %#x", status,
				v->status);
	if ((news & VNET_FEATURES_OK) != 0) {
		if (!accept_features(v))
			status &= (uint8_t)~VNET_FEATURES_OK;
		else
			v->features = v->driver_features;
	}
	v->status |= status;
}

static uint16_t take_vector(struct vnet *v, uint16_t vector)
{
	if (v->faults.refuses_vectors && vector != VNET_NO_VECTOR) {
		v->stats.n_faults++;
		return VNET_NO_VECTOR;
	}
	return vector < v->config.n_vectors ? vector : VNET_NO_VECTOR;
}

static void reset_queue(struct vnet *v, struct vnet_queue *q, uint16_t value)
{
	if (value != 1 || !vnet_has(v, VNET_RING_RESET) || !q->is_enabled) {
		model_violation(&v->model, "queue %u: it cannot be reset",
				q->idx);
		return;
	}
	vnet_queue_disable(q);
	q->was_reset = true;
	q->is_resetting = v->faults.queue_reset_hangs;
	v->stats.n_faults += v->faults.queue_reset_hangs;
}

static void enable_queue(struct vnet *v, struct vnet_queue *q, uint16_t value)
{
	if (value != 1 || q->is_enabled) {
		model_violation(&v->model, "queue %u: enable %u, it is %s",
				q->idx, value, q->is_enabled ? "on" : "off");
		return;
	}
	if (q->is_resetting)
		model_violation(&v->model,
				"queue %u: enabled while its reset "
				"goes on",
				q->idx);
	if ((v->status & VNET_DRIVER_OK) != 0 && !q->was_reset)
		model_violation(&v->model, "queue %u: enabled after DRIVER_OK",
				q->idx);
	if (q->size == 0)
		q->size = (uint16_t)v->config.queue_size;
	vnet_queue_enable(v, q);
}

static void set_half(uint64_t *field, bool is_high, uint32_t value)
{
	if (is_high)
		*field = (*field & UINT32_MAX) | (uint64_t)value << 32;
	else
		*field = (*field & ~(uint64_t)UINT32_MAX) | value;
}

static void write_queue(struct vnet *v, uint64_t offset, uint32_t value)
{
	struct vnet_queue *q = selected(v);
	const bool is_high = (offset & 4) != 0;

	if (q == NULL || (v->status & VNET_FEATURES_OK) == 0 ||
	    (q->is_enabled && offset != QUEUE_RESET &&
	     offset != QUEUE_ENABLE)) {
		model_violation(&v->model,
				"queue %u: %#x is written at the "
				"wrong time",
				v->queue_select, (unsigned)offset);
		return;
	}
	if (offset == QUEUE_SIZE)
		q->size = (uint16_t)value;
	else if (offset == QUEUE_MSIX_VECTOR)
		q->vector = take_vector(v, (uint16_t)value);
	else if (offset == QUEUE_ENABLE)
		enable_queue(v, q, (uint16_t)value);
	else if (offset == QUEUE_RESET)
		reset_queue(v, q, (uint16_t)value);
	else if (offset >= QUEUE_DEVICE)
		set_half(&q->device, is_high, value);
	else if (offset >= QUEUE_DRIVER)
		set_half(&q->driver, is_high, value);
	else
		set_half(&q->desc, is_high, value);
}

static void write_features(struct vnet *v, uint32_t value)
{
	if ((v->status & VNET_DRIVER) == 0 ||
	    (v->status & VNET_FEATURES_OK) != 0)
		model_violation(&v->model, "features are written at status %#x",
				v->status);
	else if (v->feature_select[1] < 2)
		set_half(&v->driver_features, v->feature_select[1] == 1, value);
	else if (value != 0)
		model_violation(&v->model, "features beyond bit 63");
}

void vnet_write_common(struct vnet *v, uint64_t offset, uint32_t n_bytes,
		       uint64_t value)
{
	if (!access_is_right(v, offset, n_bytes, "write"))
		return;
	switch (offset) {
	case DEVICE_FEATURE_SELECT:
		v->feature_select[0] = (uint32_t)value;
		break;
	case DRIVER_FEATURE_SELECT:
		v->feature_select[1] = (uint32_t)value;
		break;
	case DRIVER_FEATURE:
		write_features(v, (uint32_t)value);
		break;
	case CONFIG_MSIX_VECTOR:
		v->config_vector = take_vector(v, (uint16_t)value);
		break;
	case DEVICE_STATUS:
		write_status(v, (uint8_t)value);
		break;
	case QUEUE_SELECT:
		v->queue_select = (uint16_t)value;
		break;
	case DEVICE_FEATURE:
	case NUM_QUEUES:
	case CONFIG_GENERATION:
	case QUEUE_NOTIFY_OFF:
	case QUEUE_NOTIF_CONFIG_DATA:
		model_violation(&v->model, "register %#x is read-only",
				(unsigned)offset);
		break;
	default:
		write_queue(v, offset, (uint32_t)value);
	}
}
