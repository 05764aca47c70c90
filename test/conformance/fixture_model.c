/* SPDX-License-Identifier: BSD-3-Clause */
#include "fixture_model.h"

#include <millrace/pci.h>

#include "model/device.h"

enum { N_WIRE_FRAMES = 256 };

/* A context keeps its devices until it ends: keep them, too. */
static struct {
	struct model *model;
	struct model_wire *wire;
	void (*destroy)(struct model *model);
} the;

void fixture_model_add(struct harness *harness, struct model *model,
		       void (*destroy)(struct model *model))
{
	if (the.model != NULL)
		the.destroy(the.model);
	model_wire_destroy(the.wire);
	assert_non_null(model);
	the.model = model;
	the.destroy = destroy;
	the.wire = model_wire_create(N_WIRE_FRAMES);
	assert_non_null(the.wire);
	model_wire_attach(the.wire, 0, model);
	model->is_lazy = true;
	assert_int_equal(mr_ctx_add_pci_device(harness->ctx, "model",
					       model_backend(), model),
			 0);
	harness->far = model;
}

void fixture_model_teardown(struct harness *harness)
{
	if (harness->far == NULL)
		return;
	harness->far = NULL;
	assert_string_equal(model_violations(the.model), "");
}

bool fixture_model_inject(struct harness *harness, const uint8_t *bytes,
			  uint32_t n_bytes)
{
	const bool is_sent = model_wire_send(the.wire, 1, bytes, n_bytes);

	model_step(harness->far);
	return is_sent;
}

uint32_t fixture_model_collect(struct harness *harness, uint8_t *bytes,
			       uint32_t room)
{
	model_step(harness->far);
	return model_wire_receive(the.wire, 1, bytes, room);
}
