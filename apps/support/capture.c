/* SPDX-License-Identifier: BSD-3-Clause */
/* The main thread's side of captures. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "background.h"
#include "recorder.h"
#include "text.h"

/* A filter that is compiled in the background: libpcap asks DNS for each word
 * that it does not know. */
struct compilation {
	char *expression; /* NULL: none */
	struct capture_filter filter;
	struct mr_reason why;
	int err;
};

struct capture {
	struct capture_config config;
	struct wanted *wanted; /* what workers may use; NULL: nothing */
	bool is_running;
	int fd; /* an eventfd: records have come, or the filter is compiled */
	struct background *compiler;    /* NULL: no filter yet */
	struct compilation compilation; /* the compiler's, while it is busy */
	uint32_t is_told;               /* atomic */
	uint32_t n_recorders;
	struct recorder *last; /* the caller has an entry of it; NULL: none */
	uint64_t offloaded;    /* when it started */
	struct recorder *recorders;
};

struct capture *capture_create(const struct capture_config *config)
{
	const struct dataplane *plane = config->plane;
	struct mr_pool_stats pool = { .size = sizeof(pool) };
	struct capture *c = calloc(1, sizeof(*c));
	const size_t n_bytes = plane->n_workers * sizeof(struct recorder);

	if (c == NULL)
		return NULL;
	c->config = *config;
	c->n_recorders = plane->n_workers;
	c->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->fd >= 0)
		c->recorders = aligned_alloc(64, n_bytes);
	if (c->recorders == NULL) {
		const int err = errno;

		capture_destroy(c);
		errno = err;
		return NULL;
	}
	memset(c->recorders, 0, n_bytes);
	mr_pool_stats(plane->pool, &pool);
	for (uint32_t i = 0; i < c->n_recorders; i++) {
		struct recorder *r = &c->recorders[i];

		r->worker_idx = i;
		r->base = mr_region_base(mr_pool_region(plane->pool));
		r->page_bytes = pool.page_bytes;
		r->explain = config->explain;
		r->fd = c->fd;
		r->is_told = &c->is_told;
	}
	return c;
}

void capture_attach(struct capture *c, uint32_t worker_idx,
		    struct recorder **slot, void *worker)
{
	c->recorders[worker_idx].slot = slot;
	c->recorders[worker_idx].worker = worker;
}

static void free_wanted(struct capture *c)
{
	if (c->wanted == NULL)
		return;
	capture_filter_free(&c->wanted->filter);
	free(c->wanted);
	c->wanted = NULL;
}

static void forget_compilation(struct capture *c)
{
	capture_filter_free(&c->compilation.filter);
	free(c->compilation.expression);
	c->compilation.expression = NULL;
}

void capture_destroy(struct capture *c)
{
	if (c == NULL)
		return;
	capture_stop(c);
	if (!background_destroy(c->compiler))
		return; /* it waits for DNS, and uses what is here */
	forget_compilation(c);
	free_wanted(c);
	for (uint32_t i = 0; c->recorders != NULL && i < c->n_recorders; i++)
		free(c->recorders[i].ring);
	free(c->recorders);
	if (c->fd >= 0)
		close(c->fd);
	free(c);
}

/* By name, or by the device in the name. */
static int find_port(const struct capture *c, const char *name,
		     uint32_t *ret_idx, struct mr_reason *ret_why)
{
	const struct dataplane *plane = c->config.plane;

	*ret_idx = UINT32_MAX;
	if (name == NULL)
		return 0;
	for (uint32_t p = 0; p < plane->n_ports; p++) {
		struct mr_port_info info = { .size = sizeof(info) };
		const char *colon;

		mr_port_info(plane->ports[p], &info);
		colon = strchr(info.name, ':');
		if (strcmp(name, info.name) == 0 ||
		    (colon != NULL && strcmp(name, colon + 1) == 0)) {
			*ret_idx = p;
			return 0;
		}
	}
	return fail_with(ret_why, -EINVAL,
			 "no port '%.100s'; 'mrctl show ports' lists them",
			 name);
}

static bool is_quiet(const struct capture *c)
{
	for (uint32_t i = 0; i < c->n_recorders; i++)
		if (__atomic_load_n(&c->recorders[i].is_busy, __ATOMIC_SEQ_CST))
			return false;
	return true;
}

static uint64_t count_offloaded(const struct capture *c)
{
	return c->config.offloaded != NULL ?
		       c->config.offloaded(c->config.app) :
		       0;
}

static void compile_filter(void *opaque)
{
	struct compilation *compilation = opaque;

	compilation->err =
		capture_filter_compile(compilation->expression,
				       &compilation->filter, &compilation->why);
}

/* As capture_start(): -EAGAIN until the expression is compiled. */
static int take_filter(struct capture *c, const char *expression,
		       struct capture_filter *ret, struct mr_reason *ret_why)
{
	struct compilation *compilation = &c->compilation;

	if (expression == NULL)
		return 0;
	if (c->compiler == NULL)
		c->compiler = background_create(c->fd);
	if (c->compiler == NULL)
		return fail_with(ret_why, -ENOMEM,
				 "no thread to compile a filter");
	if (!background_is_idle(c->compiler))
		return fail_with(ret_why, -EAGAIN,
				 "a filter is being compiled");
	if (compilation->expression == NULL ||
	    strcmp(compilation->expression, expression) != 0) {
		forget_compilation(c); /* of a client that has left */
		compilation->expression = strdup(expression);
		if (compilation->expression == NULL)
			return fail_with(ret_why, -ENOMEM, "no memory");
		background_do(c->compiler, compile_filter, compilation);
		return fail_with(ret_why, -EAGAIN,
				 "the filter is being compiled");
	}
	if (compilation->err < 0)
		*ret_why = compilation->why;
	*ret = compilation->filter;
	compilation->filter.program = NULL;
	forget_compilation(c);
	return compilation->err;
}

static int make_wanted(struct capture *c, const struct capture_request *request,
		       struct mr_reason *ret_why)
{
	struct wanted *wanted = calloc(1, sizeof(*wanted));
	int err;

	if (wanted == NULL)
		return fail_with(ret_why, -ENOMEM, "no memory");
	wanted->request = *request;
	wanted->request.port = wanted->request.filter = NULL; /* the client's */
	wanted->n_left = (int64_t)request->n_frames;
	err = find_port(c, request->port, &wanted->port_idx, ret_why);
	if (err == 0)
		err = take_filter(c, request->filter, &wanted->filter, ret_why);
	if (err < 0)
		free(wanted);
	else
		c->wanted = wanted;
	return err;
}

/* Rings stay until the program ends. */
static bool make_rings(struct capture *c)
{
	for (uint32_t i = 0; i < c->n_recorders; i++) {
		struct recorder *r = &c->recorders[i];

		if (r->ring == NULL)
			r->ring = malloc(RECORDER_RING_BYTES);
		if (r->ring == NULL)
			return false;
		r->head = r->published = r->tail = r->missed = 0;
	}
	return true;
}

int capture_start(struct capture *c, const struct capture_request *request,
		  struct mr_reason *ret_why)
{
	int err;

	if (c->is_running)
		return fail_with(
			ret_why, -EBUSY,
			"another capture or trace is running; end that one "
			"first");
	if (!is_quiet(c))
		return fail_with(ret_why, -EAGAIN, "a worker is busy");
	free_wanted(c);
	c->last = NULL;
	if (!make_rings(c))
		return fail_with(ret_why, -ENOMEM, "no memory");
	err = make_wanted(c, request, ret_why);
	if (err < 0)
		return err;
	c->offloaded = count_offloaded(c);
	c->is_running = true;
	for (uint32_t i = 0; i < c->n_recorders; i++) {
		struct recorder *r = &c->recorders[i];

		__atomic_store_n(&r->wanted, c->wanted, __ATOMIC_SEQ_CST);
		if (r->slot != NULL)
			__atomic_store_n(r->slot, r, __ATOMIC_RELEASE);
	}
	return 0;
}

void capture_stop(struct capture *c)
{
	for (uint32_t i = 0; c->is_running && i < c->n_recorders; i++) {
		struct recorder *r = &c->recorders[i];

		if (r->slot != NULL)
			__atomic_store_n(r->slot, NULL, __ATOMIC_RELAXED);
		__atomic_store_n(&r->wanted, NULL, __ATOMIC_SEQ_CST);
	}
	c->is_running = false;
}

/* The oldest entry of a ring; NULL: it is empty. */
static const struct entry *first_entry(struct recorder *r)
{
	const uint64_t head = __atomic_load_n(&r->published, __ATOMIC_SEQ_CST);

	while (r->tail != head) {
		const struct entry *entry =
			(const void *)(r->ring +
				       (r->tail & (RECORDER_RING_BYTES - 1)));

		if (!entry->is_hole)
			return entry;
		__atomic_store_n(&r->tail, r->tail + entry->n_bytes,
				 __ATOMIC_RELEASE);
	}
	return NULL;
}

static struct recorder *oldest_recorder(const struct capture *c)
{
	struct recorder *found = NULL;
	uint64_t ns = UINT64_MAX;

	for (uint32_t i = 0; i < c->n_recorders; i++) {
		const struct entry *entry = first_entry(&c->recorders[i]);

		if (entry != NULL && entry->ns < ns) {
			found = &c->recorders[i];
			ns = entry->ns;
		}
	}
	return found;
}

bool capture_next(struct capture *c, struct capture_record *ret)
{
	struct recorder *r, *again;
	const struct entry *entry;

	if (c->last != NULL)
		__atomic_store_n(&c->last->tail,
				 c->last->tail + first_entry(c->last)->n_bytes,
				 __ATOMIC_RELEASE);
	c->last = NULL;
	/* A worker publishes its entries before it hands a frame over, so they
	 * are visible to whoever sees the receiver's entry. */
	again = c->is_running ? oldest_recorder(c) : NULL;
	do {
		r = again;
		again = r != NULL ? oldest_recorder(c) : NULL;
	} while (again != r);
	if (r == NULL)
		return false;
	c->last = r;
	entry = first_entry(r);
	*ret = (struct capture_record){
		.event = (enum capture_event)entry->event,
		.worker_idx = r->worker_idx,
		.port_idx = entry->port_idx,
		.queue_idx = entry->queue_idx,
		.burst = entry->burst,
		.id = entry->id,
		.ns = entry->ns,
		.n_frame = entry->n_frame,
		.n_data = entry->n_data,
		.why = entry->why,
		.text = (const char *)(entry + 1),
		.data = (const uint8_t *)(entry + 1) + entry->n_text,
	};
	return true;
}

struct capture_missed capture_missed(const struct capture *c)
{
	struct capture_missed missed = { .offloaded = count_offloaded(c) -
						      c->offloaded };

	for (uint32_t i = 0; i < c->n_recorders; i++)
		missed.ring_full += __atomic_load_n(&c->recorders[i].missed,
						    __ATOMIC_RELAXED);
	return missed;
}

int capture_fd(const struct capture *c)
{
	return c->fd;
}

void capture_heard(struct capture *c)
{
	uint64_t n;

	/* Before the rings are read: see recorder.c. */
	if (read(c->fd, &n, sizeof(n)) < 0)
		return;
	__atomic_store_n(&c->is_told, 0, __ATOMIC_SEQ_CST);
}
