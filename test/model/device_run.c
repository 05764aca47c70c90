/* SPDX-License-Identifier: BSD-3-Clause */
/* Running the function: steps, time, interrupts, frames, faults. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "device.h"
#include "support/random.h"

void model_lock(struct model *m)
{
	pthread_mutex_lock(&m->lock);
}

void model_unlock(struct model *m)
{
	pthread_mutex_unlock(&m->lock);
}

uint64_t model_now_ns(const struct model *m)
{
	struct timespec t;

	if (m->now != NULL)
		return m->now(m->now_arg);
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void model_wake_at(struct model *m, uint64_t ns)
{
	if (m->wake_ns == 0 || ns < m->wake_ns) {
		m->wake_ns = ns;
		pthread_cond_signal(&m->wake);
	}
}

void model_step(struct model *m)
{
	model_lock(m);
	m->wake_ns = 0;
	if (!m->faults.all_ones)
		m->ops->step(m);
	if (model_fault(m, m->faults.spurious_irqs) && m->n_irqs > 0)
		model_irq(m, model_random(m) % m->n_irqs);
	model_unlock(m);
}

void model_poke(struct model *m)
{
	if (!m->is_lazy)
		model_step(m);
}

bool model_tx(struct model *m, const uint8_t *bytes, uint32_t n_bytes)
{
	return m->wire != NULL &&
	       wire_push(m->wire, 1 - m->end, bytes, n_bytes);
}

const uint8_t *model_rx_peek(struct model *m, uint32_t *ret_n_bytes)
{
	if (m->wire == NULL)
		return NULL;
	return wire_peek(m->wire, m->end, ret_n_bytes);
}

void model_rx_pop(struct model *m)
{
	wire_pop(m->wire, m->end);
}

static void ring(int fd)
{
	const uint64_t one = 1;

	/* A counter at its limit also wakes. */
	if (fd >= 0 && write(fd, &one, sizeof(one)) < 0)
		return;
}

void model_irq(struct model *m, uint32_t vector)
{
	if (m->n_irqs == 0) /* MSI-X is off */
		return;
	if (vector >= m->n_irqs) {
		model_violation(m, "interrupt on vector %u of %u", vector,
				m->n_irqs);
		return;
	}
	if (model_fault(m, m->faults.lost_irqs))
		return;
	m->n_irqs_sent++;
	ring(m->irq_fds[vector]);
}

void model_request(struct model *m)
{
	model_lock(m);
	ring(m->req_fd);
	model_unlock(m);
}

void model_pci_error(struct model *m)
{
	model_lock(m);
	ring(m->err_fd);
	model_unlock(m);
}

uint32_t model_random(struct model *m)
{
	return (uint32_t)(test_random_u64(&m->random) >> 32);
}

bool model_fault(struct model *m, uint32_t one_in)
{
	return one_in != 0 && model_random(m) % one_in == 0;
}

void model_set_faults(struct model *m, const struct model_faults *faults)
{
	model_lock(m);
	m->faults = *faults;
	model_unlock(m);
	model_poke(m);
}

void model_violation(struct model *m, const char *format, ...)
{
	const size_t n = strlen(m->violations);
	const size_t room = sizeof(m->violations) - n;
	va_list args;
	int len;

	m->n_violations++;
	va_start(args, format);
	len = vsnprintf(m->violations + n, room, format, args);
	va_end(args);
	/* Only whole lines; the first ones are the most useful. */
	if (len < 0 || (size_t)len + 2 > room)
		m->violations[n] = '\0';
	else
		snprintf(m->violations + n + len, room - (size_t)len, "\n");
}

const char *model_violations(struct model *m)
{
	const char *text;

	model_lock(m);
	text = m->violations;
	model_unlock(m);
	return text;
}

void model_forgive(struct model *m)
{
	model_lock(m);
	m->violations[0] = '\0';
	m->n_violations = 0;
	model_unlock(m);
}
