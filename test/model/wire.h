/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A cable with two ends, 0 and 1: a bounded queue of frames each way. A model's
 * port is at one end, the test at the other.
 *
 *     model --+ end 0 ========= end 1 +-- the test
 *
 * A full queue pushes back, so that tests can count on each frame.
 */
#ifndef MODEL_WIRE_H
#define MODEL_WIRE_H

#include <stdbool.h>
#include <stdint.h>

struct model;
struct model_wire;

enum { WIRE_MAX_BYTES = 16384 }; /* of a frame, without FCS */

/* NULL: no memory. Destroy it behind the models at its ends. */
struct model_wire *model_wire_create(uint32_t n_frames);
void model_wire_destroy(struct model_wire *wire);

/* A model's port at an end is stepped when frames move there. NULL: none. */
void model_wire_attach(struct model_wire *wire, uint32_t end, struct model *m);

/* The test is at @p end. False: no room. The other end's model is stepped. */
bool model_wire_send(struct model_wire *wire, uint32_t end,
		     const uint8_t *bytes, uint32_t n_bytes);

/* The next frame that came to @p end, 0: none. It has to fit into @p room. */
uint32_t model_wire_receive(struct model_wire *wire, uint32_t end,
			    uint8_t *bytes, uint32_t room);

/* Frames under way to @p end. */
uint32_t model_wire_n(struct model_wire *wire, uint32_t end);

/* For models, in their step. Peeked bytes stay until they are popped. */
bool wire_push(struct model_wire *wire, uint32_t to, const uint8_t *bytes,
	       uint32_t n_bytes);
const uint8_t *wire_peek(struct model_wire *wire, uint32_t to,
			 uint32_t *ret_n_bytes);
void wire_pop(struct model_wire *wire, uint32_t to);

#endif
