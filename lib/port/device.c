/* SPDX-License-Identifier: BSD-3-Clause */
/* The settings of a port's device, with their checks, and its counters. */
#include <errno.h>
#include <string.h>

#include <millrace/driver.h>

#include "port/events.h"
#include "port/hand_over.h"

static int refuse_setting(const struct mr_port *port, const char *what,
			  struct mr_reason *reterr_reason)
{
	return mr_fail(reterr_reason, -ENOTSUP,
		       "%s: driver %s cannot set %s of this device",
		       port->info->name, port->driver->name, what);
}

static bool is_zero(const uint8_t mac[6])
{
	static const uint8_t zero[6];

	return memcmp(mac, zero, sizeof(zero)) == 0;
}

static struct mri_settings *settings_of(const struct mr_port *port)
{
	return &((struct mri_events *)port->events)->kept.settings;
}

static void note_setting(const struct mr_port *port, enum mri_setting setting,
			 uint64_t value)
{
	if (port->events == NULL) /* a port of mr-brokerd */
		return;
	settings_of(port)->is_made[setting] = true;
	settings_of(port)->values[setting] = value;
}

int mr_port_set_promisc(struct mr_port *port, bool on,
			struct mr_reason *reterr_reason)
{
	int err;

	if (port->driver->set_promisc == NULL)
		return refuse_setting(port, "promiscuous mode", reterr_reason);
	err = mri_port_change(port)->set_promisc(port, on, reterr_reason);
	if (err == 0)
		note_setting(port, MRI_SET_PROMISC, on);
	return err;
}

int mr_port_set_allmulti(struct mr_port *port, bool on,
			 struct mr_reason *reterr_reason)
{
	int err;

	if (port->driver->set_allmulti == NULL)
		return refuse_setting(port, "reception of all multicast",
				      reterr_reason);
	err = mri_port_change(port)->set_allmulti(port, on, reterr_reason);
	if (err == 0)
		note_setting(port, MRI_SET_ALLMULTI, on);
	return err;
}

int mr_port_set_mtu(struct mr_port *port, uint32_t mtu_bytes,
		    struct mr_reason *reterr_reason)
{
	int err;

	if (mtu_bytes < MR_MTU_MIN_BYTES || mtu_bytes > UINT16_MAX)
		return mr_fail(reterr_reason, -EINVAL,
			       "%s: an MTU of %u: it is %d to %d",
			       port->info->name, mtu_bytes, MR_MTU_MIN_BYTES,
			       UINT16_MAX);
	if (port->driver->set_mtu == NULL)
		return refuse_setting(port, "the MTU", reterr_reason);
	err = mri_port_change(port)->set_mtu(port, mtu_bytes, reterr_reason);
	if (err == 0) {
		note_setting(port, MRI_SET_MTU, mtu_bytes);
		__atomic_store_n(&port->info->mtu_bytes, mtu_bytes,
				 __ATOMIC_RELAXED);
	}
	(void)mri_events_publish(port);
	return err;
}

int mr_port_set_mac(struct mr_port *port, const uint8_t mac[6],
		    struct mr_reason *reterr_reason)
{
	uint64_t value = 0;
	int err;

	if (mac == NULL || is_zero(mac))
		return mr_fail(reterr_reason, -EINVAL,
			       "%s: no MAC address: it is NULL, or all zero",
			       port->info->name);
	if (mac[0] & 1)
		return mr_fail(reterr_reason, -EINVAL,
			       "%s: %02x:%02x:%02x:%02x:%02x:%02x is the "
			       "address of a group: a port's is unicast",
			       port->info->name, mac[0], mac[1], mac[2], mac[3],
			       mac[4], mac[5]);
	if (port->driver->set_mac == NULL)
		return refuse_setting(port, "the MAC address", reterr_reason);
	err = mri_port_change(port)->set_mac(port, mac, reterr_reason);
	if (err < 0)
		return err;
	memcpy(&value, mac, sizeof(port->info->mac));
	note_setting(port, MRI_SET_MAC, value);
	memcpy(port->info->mac, mac, sizeof(port->info->mac));
	port->info->has_mac = 1;
	(void)mri_events_publish(port);
	return 0;
}

/* From mr_alloc(); NULL, with the reason: no memory. */
static void *copy_bytes(const struct mr_port *port, const void *bytes,
			size_t n_bytes, struct mr_reason *reterr_reason)
{
	void *copy = mr_alloc(port->ctx, 0, n_bytes);

	if (copy != NULL)
		return memcpy(copy, bytes, n_bytes);
	(void)mr_fail(reterr_reason, -ENOMEM, "%s: no memory for a filter",
		      port->info->name);
	return NULL;
}

int mr_port_set_mac_filter(struct mr_port *port, const uint8_t (*macs)[6],
			   uint32_t n, struct mr_reason *reterr_reason)
{
	struct mri_settings *settings;
	uint8_t(*copy)[6] = NULL;
	int err;

	if (macs == NULL && n > 0)
		return mr_fail(reterr_reason, -EINVAL,
			       "%s: a MAC filter of %u addresses, and no list",
			       port->info->name, n);
	for (uint32_t i = 0; i < n; i++)
		if (is_zero(macs[i]))
			return mr_fail(reterr_reason, -EINVAL,
				       "%s: address %u of the MAC filter is "
				       "all zero",
				       port->info->name, i);
	if (port->driver->set_mac_filter == NULL)
		return refuse_setting(port, "a MAC filter", reterr_reason);
	if (n > 0) {
		copy = copy_bytes(port, macs, n * sizeof(macs[0]),
				  reterr_reason);
		if (copy == NULL)
			return -ENOMEM;
	}
	err = mri_port_change(port)->set_mac_filter(port, macs, n,
						    reterr_reason);
	if (err < 0) {
		mr_free(port->ctx, copy);
		return err;
	}
	settings = settings_of(port);
	mr_free(port->ctx, settings->macs);
	settings->macs = copy;
	settings->n_macs = n;
	return 0;
}

int mr_port_set_filter(struct mr_port *port, const char *expression,
		       struct mr_reason *reterr_reason)
{
	char *copy;
	int err;

	if (expression == NULL || expression[0] == '\0')
		return mr_fail(reterr_reason, -EINVAL,
			       "%s: no filter: it is NULL, or empty",
			       port->info->name);
	if (port->driver->set_filter == NULL)
		return refuse_setting(port, "a filter", reterr_reason);
	copy = copy_bytes(port, expression, strlen(expression) + 1,
			  reterr_reason);
	if (copy == NULL)
		return -ENOMEM;
	err = mri_port_change(port)->set_filter(port, expression,
						reterr_reason);
	if (err < 0) {
		mr_free(port->ctx, copy);
		return err;
	}
	mr_free(port->ctx, settings_of(port)->filter);
	settings_of(port)->filter = copy;
	return 0;
}

static void log_refused(const struct mr_port *port, int err,
			const struct mr_reason *why)
{
	if (err < 0)
		mr_log(port->ctx, MR_LOG_WARNING,
		       "%s; it was set before the port was opened again",
		       why->text);
}

static int repeat_setting(struct mr_port *port, enum mri_setting setting,
			  uint64_t value, struct mr_reason *why)
{
	switch (setting) {
	case MRI_SET_MAC:
		return mr_port_set_mac(port, (const uint8_t *)&value, why);
	case MRI_SET_MTU:
		return mr_port_set_mtu(port, (uint32_t)value, why);
	case MRI_SET_ALLMULTI:
		return mr_port_set_allmulti(port, value != 0, why);
	default:
		return mr_port_set_promisc(port, value != 0, why);
	}
}

void mri_settings_repeat(struct mr_port *port)
{
	const struct mri_settings *set = settings_of(port);
	struct mr_reason why;
	int err;

	for (enum mri_setting i = 0; i < MRI_N_SETTINGS; i++) {
		err = set->is_made[i] ?
			      repeat_setting(port, i, set->values[i], &why) :
			      0;
		log_refused(port, err, &why);
	}
	err = set->macs == NULL ? 0 :
				  mr_port_set_mac_filter(port, set->macs,
							 set->n_macs, &why);
	log_refused(port, err, &why);
	err = set->filter == NULL ? 0 :
				    mr_port_set_filter(port, set->filter, &why);
	log_refused(port, err, &why);
}

void mri_settings_free(struct mr_port *port)
{
	struct mri_settings *settings = settings_of(port);

	mr_free(port->ctx, settings->macs);
	mr_free(port->ctx, settings->filter);
}

uint32_t mr_txq_times(struct mr_txq *txq, struct mr_meta *ret_metas, uint32_t n)
{
	const struct mr_driver *driver = txq->queue.port->driver;

	return driver->txq_times == NULL ? 0 :
					   driver->txq_times(txq, ret_metas, n);
}

int mr_port_open_kernel(struct mr_port *port, struct mr_reason *reterr_reason)
{
	if (port->driver->open_kernel == NULL)
		return mr_fail(reterr_reason, -ENOTSUP,
			       "%s: driver %s cannot hand frames to the kernel",
			       port->info->name, port->driver->name);
	return mri_port_change(port)->open_kernel(port, reterr_reason);
}

uint32_t mr_port_to_kernel(struct mr_port *port, struct mr_cache *cache,
			   const struct mr_frame *frames, uint32_t n)
{
	uint32_t n_handed = 0;

	for (uint32_t i = 0, k; i < n; i += k) {
		k = mr_frame_n_entries(&frames[i]);
		if (port->driver->to_kernel != NULL)
			n_handed +=
				port->driver->to_kernel(port, &frames[i], k);
	}
	mr_frame_free_bulk(cache, frames, n);
	return n_handed;
}

uint32_t mr_port_device_stats(const struct mr_port *port,
			      struct mr_named_count *ret_counts, uint32_t n)
{
	if (port->driver->device_stats == NULL)
		return 0;
	return port->driver->device_stats(port, ret_counts, n);
}
