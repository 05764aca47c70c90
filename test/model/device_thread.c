/* SPDX-License-Identifier: BSD-3-Clause */
/* The function's own thread, in a separate file so that only programs that use
 * it link pthread_create(): ThreadSanitizer runs those. */
#include "device.h"

static void *run_device(void *opaque)
{
	struct model *m = opaque;

	model_lock(m);
	while (!m->is_stopping) {
		const uint64_t ns = m->wake_ns;
		const struct timespec until = {
			.tv_sec = (time_t)(ns / 1000000000u),
			.tv_nsec = (long)(ns % 1000000000u),
		};

		if (ns == 0) {
			pthread_cond_wait(&m->wake, &m->lock);
		} else if (model_now_ns(m) < ns) {
			pthread_cond_timedwait(&m->wake, &m->lock, &until);
		} else {
			model_unlock(m);
			model_step(m);
			model_lock(m);
		}
	}
	model_unlock(m);
	return NULL;
}

int model_start(struct model *m)
{
	const int err = pthread_create(&m->thread, NULL, run_device, m);

	m->stop = err == 0 ? model_stop : NULL;
	return -err;
}

void model_stop(struct model *m)
{
	model_lock(m);
	m->is_stopping = true;
	pthread_cond_signal(&m->wake);
	model_unlock(m);
	pthread_join(m->thread, NULL);
	m->stop = NULL;
	m->is_stopping = false;
}
