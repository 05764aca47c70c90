/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Our drivers over each model in turn: a program's tests run once per device.
 * The test is at the far end of the wire.
 */
#ifndef MODEL_DEVICES_H
#define MODEL_DEVICES_H

#include "harness.h"
#include "model/intel.h"
#include "model/virtio.h"
#include "support/packets.h"

/* Bits: the devices of a test. */
enum {
	ON_82574 = 1 << 0,
	ON_82576 = 1 << 1,
	ON_I210 = 1 << 2,
	ON_I350 = 1 << 3,
	ON_INTEL = 0x0f,
	ON_SPLIT = 1 << 4,
	ON_SPLIT_IN_ORDER = 1 << 5,
	ON_PACKED = 1 << 6,
	ON_PACKED_IN_ORDER = 1 << 7,
	ON_IN_ORDER = ON_SPLIT_IN_ORDER | ON_PACKED_IN_ORDER,
	ON_VIRTIO = 0xf0,
	ON_ALL = 0xff,
};

static const struct device {
	uint32_t bit;
	const char *name;
	const struct intel_chip *chip; /* NULL: virtio */
	const char *ring;              /* options that choose it */
} devices[] = {
	{ ON_82574, "82574L", &chip_82574l, "" },
	{ ON_82576, "82576", &chip_82576, "" },
	{ ON_I210, "I210", &chip_i210, "" },
	{ ON_I350, "I350", &chip_i350, "" },
	{ ON_SPLIT, "split", NULL, "packed=off,in-order=off" },
	{ ON_SPLIT_IN_ORDER, "split, in order", NULL,
	  "packed=off,in-order=on" },
	{ ON_PACKED, "packed", NULL, "packed=on,in-order=off" },
	{ ON_PACKED_IN_ORDER, "packed, in order", NULL,
	  "packed=on,in-order=on" },
};

static const struct device *device; /* the current one */
static mr_clock_fn *device_clock;   /* of the context; NULL: real time */

/* An open waits for an answer, 2 s, and for two resets at most. */
enum { DEVICE_OPEN_MS = 7000 };

/* A test on some devices. */
#define DEVICE_TEST(on, name)                                                  \
	static void name##_on_device(void);                                    \
	TEST(name)                                                             \
	{                                                                      \
		if (device->bit & (on))                                        \
			name##_on_device();                                    \
	}                                                                      \
	static void name##_on_device(void)

/* For main(): run all tests on some devices. Returns how many failed. */
static inline int devices_run(uint32_t on)
{
	int n_failed = 0;

	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
		device = &devices[i];
		if (device->bit & on)
			n_failed += test_run(device->name, NULL, NULL);
	}
	return n_failed;
}

/* Everything but opening the port. The configuration is of virtio devices;
 * NULL: all features and two pairs of queues. */
static inline void device_make(struct harness *harness,
			       const struct vnet_config *config)
{
	static const struct vnet_config all = { .n_pairs = 2 };
	static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 1 };
	struct intel *nic = NULL;
	struct vnet *v = NULL;

	if (device->chip != NULL)
		nic = intel_create(device->chip, mac);
	else
		v = vnet_create(config != NULL ? config : &all);
	assert_true(nic != NULL || v != NULL);
	harness_begin(harness, nic != NULL ? &nic->m : vnet_model(v),
		      (struct mr_pool_config){ 0 }, device_clock);
	harness->nic = nic;
	harness->v = v;
}

static inline int device_try_open(struct harness *harness, const char *options,
				  struct mr_reason *why)
{
	char all[256];

	snprintf(all, sizeof(all), "%s%s%s", device->ring,
		 device->ring[0] != '\0' && options[0] != '\0' ? "," : "",
		 options);
	return harness_try_open(harness, all, why);
}

/* Open it, and let its link come up unless the cable is out. */
static inline void device_open(struct harness *harness, const char *options)
{
	struct mr_reason why = { "" };

	if (device_try_open(harness, options, &why) < 0)
		fail_msg("%s: %s", options, why.text);
	model_step(harness->m);
	mr_port_poll(harness->port);
}

/* Opening fails: in time, with one line of reason, and all is as before. */
static inline void device_refuses(struct harness *harness, const char *options,
				  const char *words)
{
	const uint64_t n_free = harness_free_pages(harness);
	const int32_t n_out = harness->allocator.n_out;
	const uint64_t start_ms = harness_now_ms();
	struct mr_reason why = { "" };

	if (device_try_open(harness, options, &why) >= 0)
		fail_msg("'%s' was opened; expected: %s", options, words);
	assert_true(why.text[0] != '\0');
	assert_reason_has(&why, words);
	assert_true(harness_now_ms() - start_ms <
		    test_limit_ms(DEVICE_OPEN_MS));
	assert_int_equal(harness_free_pages(harness), n_free);
	assert_int_equal(harness->allocator.n_out, n_out);
	assert_null(harness->port);
}

static inline void device_end(struct harness *harness)
{
	harness_close(harness);
	if (harness->nic != NULL)
		intel_destroy(harness->nic);
	else
		vnet_destroy(harness->v);
	model_wire_destroy(harness->wire);
}

static inline void device_set_faults(struct harness *harness,
				     const struct model_faults *faults,
				     const struct vnet_faults *more)
{
	model_set_faults(harness->m, faults);
	if (harness->v != NULL)
		vnet_set_faults(harness->v, more);
}

/* The device has no faults any more. */
static inline void device_heal(struct harness *harness)
{
	device_set_faults(harness, &(const struct model_faults){ 0 },
			  &(const struct vnet_faults){ 0 });
}

static inline void device_set_link(struct harness *harness, bool is_up)
{
	const struct model_faults faults = { .link_down = !is_up };

	model_set_faults(harness->m, &faults);
}

#endif
