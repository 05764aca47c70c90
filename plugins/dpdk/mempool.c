/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * librte_mempool_millrace: the mempool handler "millrace" for DPDK programs.
 *
 *     rte_mempool_get, _put       (rte_mempool's own cache, if configured)
 *               |
 *     lane of the lcore: an mr_objcache, used without lock or atomic
 *               |
 *     mr_objpool: depot of magazines, lock-free, last in first out
 *
 * The objects are where DPDK puts them; the pool handles only their numbers.
 *
 * A mempool must be able to hand out all its objects to any lcore. So an lcore
 * that gets less than it asked for, while the lanes of others have objects,
 * collects: it closes those lanes, which moves their objects to the depot. An
 * lcore marks its lane as in use with a plain store, followed by a plain load
 * to see whether somebody is collecting; a collector stores first and has the
 * kernel execute a barrier between the two on every core (membarrier(2)), so
 * that one of them sees the other. Neither waits: the collector skips a lane in
 * use, and the lcore uses the lane that threads without a number share, under a
 * lock.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/membarrier.h>

#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_malloc.h>
#include <rte_mempool.h>
#include <rte_spinlock.h>

#include <millrace/ctx.h>
#include <millrace/experimental/objpool.h>
#include <millrace/pool.h>

enum { SHARED_LANE = RTE_MAX_LCORE, N_LANES };

struct lane {
	struct mr_objcache *cache; /* NULL: unused since it was closed */
	uint32_t in_use;           /* atomic */
} __rte_cache_aligned;

/* mp->pool_data points to it: in memory that all processes see. */
struct plug {
	struct mr_ctx *ctx;
	struct mr_objpool *pool; /* NULL until there is memory */
	uintptr_t addr;          /* objects lie in [addr, addr + n_bytes) */
	uint64_t n_bytes;
	pid_t process;
	bool has_membarrier;
	rte_spinlock_t lock; /* shared lane; opening and closing lanes;
			      * collecting */
	uint32_t collecting; /* atomic */
	struct lane lanes[N_LANES];
};

static pid_t this_process;

RTE_LOG_REGISTER(mr_logtype, mempool.millrace, NOTICE);

#define LOG_ERR(...) rte_log(RTE_LOG_ERR, mr_logtype, "millrace: " __VA_ARGS__)

static bool membarrier_on_all_cores(int command)
{
	return syscall(SYS_membarrier, command, 0, 0) == 0;
}

static int plug_alloc(struct rte_mempool *mp)
{
	struct mr_reason reason;
	struct plug *plug;
	int err;

	plug = rte_zmalloc_socket("millrace", sizeof(*plug),
				  RTE_CACHE_LINE_SIZE, mp->socket_id);
	if (plug == NULL)
		return -ENOMEM;
	err = mr_ctx_create(NULL, &plug->ctx, &reason);
	if (err < 0) {
		LOG_ERR("%s: %s\n", mp->name, reason.text);
		rte_free(plug);
		return err;
	}
	this_process = getpid();
	plug->process = this_process;
	plug->has_membarrier = membarrier_on_all_cores(
		MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
	rte_spinlock_init(&plug->lock);
	mp->pool_data = plug;
	return 0;
}

static void close_lane(struct lane *lane)
{
	mr_objcache_destroy(lane->cache);
	lane->cache = NULL;
}

static void plug_free(struct rte_mempool *mp)
{
	struct plug *plug = mp->pool_data;
	struct mr_reason reason;

	if (plug == NULL) /* created, but without memory */
		return;
	for (uint32_t i = 0; i < N_LANES; i++)
		close_lane(&plug->lanes[i]);
	if (mr_objpool_destroy(plug->pool, &reason) < 0)
		LOG_ERR("%s: %s\n", mp->name, reason.text);
	mr_ctx_destroy(plug->ctx);
	rte_free(plug);
}

/*
 * The first chunk decides where objects may lie: a 32-bit number per unit of
 * alignment reaches 128 GiB down and up from it, 16 GiB if the mempool's flags
 * allow 8 bytes. The chunks of a mempool are usually adjacent.
 */
static int make_pool(struct rte_mempool *mp, struct plug *plug, uintptr_t addr)
{
	const uint32_t align = mp->flags & RTE_MEMPOOL_F_NO_CACHE_ALIGN ?
				       sizeof(uint64_t) :
				       RTE_MEMPOOL_ALIGN;
	const uint64_t n_bytes = (uint64_t)UINT32_MAX * align & ~4095ull;
	const uint64_t before = RTE_MIN(n_bytes / 2, addr - 4096) & ~4095ull;
	const struct mr_objpool_config config = {
		.size = sizeof(config),
		.object_bytes = mp->elt_size,
		.align_bytes = align,
		.max_caches = N_LANES,
		/* rte_mempool has its own cache in front. */
		.magazine_objects = MR_MAGAZINE_PAGES,
		.n_objects = mp->size,
		.memory = (void *)((addr & ~4095ull) - before),
		.memory_bytes = n_bytes,
		.name = mp->name,
	};
	struct mr_reason reason;
	int err;

	err = mr_objpool_create(plug->ctx, &config, &plug->pool, &reason);
	if (err < 0) {
		LOG_ERR("%s: %s\n", mp->name, reason.text);
		return err;
	}
	plug->addr = (uintptr_t)config.memory;
	plug->n_bytes = n_bytes;
	return 0;
}

static int plug_populate(struct rte_mempool *mp, unsigned int max_objs,
			 void *vaddr, rte_iova_t iova, size_t len,
			 rte_mempool_populate_obj_cb_t *obj_cb,
			 void *obj_cb_arg)
{
	struct plug *plug = mp->pool_data;
	const uintptr_t addr = (uintptr_t)vaddr;
	int err;

	if (plug->pool == NULL) {
		err = make_pool(mp, plug, addr);
		if (err < 0)
			return err;
	}
	if (addr < plug->addr || addr + len > plug->addr + plug->n_bytes) {
		LOG_ERR("%s: memory at %p is too far from the first chunk: "
			"objects must lie between %#" PRIxPTR " and %#" PRIx64
			"\n",
			mp->name, vaddr, plug->addr,
			plug->addr + plug->n_bytes);
		return -ERANGE;
	}
	return rte_mempool_op_populate_default(mp, max_objs, vaddr, iova, len,
					       obj_cb, obj_cb_arg);
}

/* Under the lock. On success, the lane has a cache. */
static bool open_lane(struct plug *plug, struct lane *lane)
{
	struct mr_reason reason;

	if (plug->pool == NULL) /* nothing was ever put into the mempool */
		return false;
	if (lane->cache == NULL &&
	    mr_objcache_create(plug->pool, &lane->cache, &reason) < 0)
		LOG_ERR("%s\n", reason.text);
	return lane->cache != NULL;
}

static inline void leave(struct lane *lane)
{
	/* Releases what was done in the lane: pairs with collect(). */
	__atomic_store_n(&lane->in_use, 0, __ATOMIC_RELEASE);
}

/* The lane of this lcore; NULL: none, or not now. */
static inline struct lane *enter(struct plug *plug)
{
	const unsigned int lcore = rte_lcore_id();
	struct lane *lane = &plug->lanes[lcore];

	if (unlikely(lcore >= RTE_MAX_LCORE) ||
	    unlikely(plug->process != this_process))
		return NULL;
	if (likely(plug->has_membarrier)) {
		__atomic_store_n(&lane->in_use, 1, __ATOMIC_RELAXED);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
	} else {
		__atomic_exchange_n(&lane->in_use, 1, __ATOMIC_SEQ_CST);
	}
	if (likely(__atomic_load_n(&plug->collecting, __ATOMIC_SEQ_CST) == 0 &&
		   lane->cache != NULL))
		return lane;
	leave(lane);
	return NULL;
}

/*
 * Under the lock, in which threads without a lane work, and lcores whose lane
 * is being collected or is new.
 */
static struct lane *enter_shared(struct plug *plug)
{
	const unsigned int lcore = rte_lcore_id();
	struct lane *lane = &plug->lanes[SHARED_LANE];

	if (plug->process != this_process) {
		static bool was_said;

		if (!__atomic_exchange_n(&was_said, true, __ATOMIC_RELAXED))
			LOG_ERR("secondary processes cannot use it\n");
		return NULL;
	}
	rte_spinlock_lock(&plug->lock);
	/* Nobody is collecting, which takes the lock. */
	if (lcore < RTE_MAX_LCORE)
		open_lane(plug, &plug->lanes[lcore]);
	if (open_lane(plug, lane))
		return lane;
	rte_spinlock_unlock(&plug->lock);
	return NULL;
}

static void leave_shared(struct plug *plug)
{
	rte_spinlock_unlock(&plug->lock);
}

/* Under the lock: move what lanes hold, except one's own, to the depot. */
static void collect(struct plug *plug, const struct lane *own)
{
	__atomic_store_n(&plug->collecting, 1, __ATOMIC_SEQ_CST);
	if (plug->has_membarrier)
		membarrier_on_all_cores(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
	for (uint32_t i = 0; i < N_LANES; i++) {
		struct lane *lane = &plug->lanes[i];

		if (lane != own &&
		    __atomic_load_n(&lane->in_use, __ATOMIC_SEQ_CST) == 0)
			close_lane(lane);
	}
	/* Pairs with the acquire in enter(). */
	__atomic_store_n(&plug->collecting, 0, __ATOMIC_RELEASE);
}

static uint64_t n_free(const struct plug *plug)
{
	struct mr_objpool_stats stats = { .size = sizeof(stats) };

	return mr_objpool_stats(plug->pool, &stats) < 0 ? 0 : stats.n_free;
}

/*
 * Take n objects through a lane, or none. The lane's cache has supplied n_done,
 * and the depot is empty.
 */
static __attribute__((noinline)) int dequeue_rest(struct plug *plug,
						  struct lane *lane,
						  void **objs, uint32_t n,
						  uint32_t n_done)
{
	const bool is_shared = lane == &plug->lanes[SHARED_LANE];

	if (n_free(plug) >= n - n_done) {
		if (!is_shared)
			rte_spinlock_lock(&plug->lock);
		collect(plug, lane);
		n_done += mr_obj_alloc_bulk(lane->cache, objs + n_done,
					    n - n_done);
		if (!is_shared)
			rte_spinlock_unlock(&plug->lock);
	}
	if (n_done == n)
		return 0;
	mr_obj_free_bulk(lane->cache, objs, n_done);
	return -ENOBUFS;
}

static inline int dequeue_from(struct plug *plug, struct lane *lane,
			       void **objs, uint32_t n)
{
	const uint32_t n_done = mr_obj_alloc_bulk(lane->cache, objs, n);

	return likely(n_done == n) ? 0 :
				     dequeue_rest(plug, lane, objs, n, n_done);
}

static int plug_dequeue(struct rte_mempool *mp, void **objs, unsigned int n)
{
	struct plug *plug = mp->pool_data;
	struct lane *lane = enter(plug);
	int err;

	if (likely(lane != NULL)) {
		err = dequeue_from(plug, lane, objs, n);
		leave(lane);
		return err;
	}
	lane = enter_shared(plug);
	if (lane == NULL)
		return -ENOBUFS;
	err = dequeue_from(plug, lane, objs, n);
	leave_shared(plug);
	return err;
}

static int plug_enqueue(struct rte_mempool *mp, void *const *objs,
			unsigned int n)
{
	struct plug *plug = mp->pool_data;
	struct lane *lane = enter(plug);

	if (likely(lane != NULL)) {
		mr_obj_free_bulk(lane->cache, objs, n);
		leave(lane);
		return 0;
	}
	lane = enter_shared(plug);
	if (lane == NULL)
		return -ENOBUFS;
	mr_obj_free_bulk(lane->cache, objs, n);
	leave_shared(plug);
	return 0;
}

static unsigned int plug_get_count(const struct rte_mempool *mp)
{
	const struct plug *plug = mp->pool_data;

	if (plug == NULL || plug->pool == NULL || plug->process != this_process)
		return 0;
	return (unsigned int)n_free(plug);
}

static const struct rte_mempool_ops mr_mempool_ops = {
	.name = "millrace",
	.alloc = plug_alloc,
	.free = plug_free,
	.enqueue = plug_enqueue,
	.dequeue = plug_dequeue,
	.get_count = plug_get_count,
	.populate = plug_populate,
};

RTE_MEMPOOL_REGISTER_OPS(mr_mempool_ops);
