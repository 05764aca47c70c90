/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_FLOW_H
#define MILLRACE_FLOW_H

#include <stdint.h>

#include <millrace/api.h>
#include <millrace/error.h>

MR_BEGIN_DECLS

/**
 * @file
 * Flow tables, and a timer wheel that ages flows.
 *
 *     keys --> mr_flow_find_bulk() --> record numbers --> records
 *                                          |
 *     clock --> mr_wheel_expire() ---------+
 *
 * A table owns its records: fixed-size memory in the program's own layout,
 * which begins with the key. Records have numbers and never move. The table
 * grows by one bucket at a time (linear hashing), so that no call pauses for a
 * rehash; the limit on records bounds its memory. A lookup reads one cache line
 * of the table and the record; a burst of lookups overlaps those misses.
 *
 * A wheel reads no clock: the program passes ticks of any length. A packet need
 * not move its flow on the wheel: the program writes the time into the record
 * and, when the flow expires, sets it again if it was used meanwhile.
 *
 * Both belong to one thread at a time and share nothing.
 */

struct mr_ctx;
struct mr_flow_table;
struct mr_wheel;

/** No record. */
#define MR_FLOW_NONE UINT32_MAX

enum {
	MR_FLOW_KEY_MAX = 64,      /**< longest key, in bytes */
	MR_FLOW_RECORD_MAX = 4096, /**< largest record, in bytes */
	MR_FLOW_BURST_MAX = 256,   /**< longest burst of keys */
};

/** Zero is the default of each member not marked as required. */
struct mr_flow_config {
	uint32_t size;         /**< sizeof(struct mr_flow_config) */
	uint32_t key_bytes;    /**< required: 4..MR_FLOW_KEY_MAX, a multiple of
				*   4 */
	uint32_t record_bytes; /**< required: key included, a multiple of 8 */
	uint32_t n_max;        /**< required: most records, below 2^31 */
	uint32_t n_start;      /**< records to reserve memory for now; 0: few */
	uint32_t reserved;     /**< 0 */
	uint64_t seed; /**< of the hash; keep it from those who choose keys; 0:
			*   random */
};

/** The size of a table. */
struct mr_flow_stats {
	uint32_t size; /**< sizeof(struct mr_flow_stats), set by the caller */
	uint32_t n;    /**< records */
	uint32_t n_max;
	uint32_t n_buckets;
	uint32_t n_overflows; /**< overflow buckets, where a bucket was full */
	uint32_t reserved;
	uint64_t bytes; /**< memory it uses now */
};

/** What mr_flow_record() reads of a table; not for programs. */
struct mr_flow_head {
	uint8_t *records;
	uint64_t record_bytes;
};

/**
 * Create an empty table.
 *
 * It reserves the addresses that n_max records may need, and takes memory as it
 * grows: the first 2 MiB of each of its three parts (buckets, overflow buckets,
 * records) in small OS pages, the rest in transparent huge pages if the kernel
 * has them. Memory for n_start records is taken now and kept. A forked child
 * does not have the table.
 *
 * @param[out] ret_table  set on success, unchanged on failure
 *
 * @return 0, or
 *   -EINVAL  a member of @p config is out of range
 *   -ENOMEM  no memory, or no addresses for n_max records
 *   -EIO     no seed was given and the kernel has no random numbers yet
 *
 * Owner:  the caller, of the table; the table, of its records.
 * Thread: any; the table then belongs to one at a time.
 * Cost:   system calls; writes to the memory for n_start records.
 */
MR_API int mr_flow_create(struct mr_ctx *ctx,
			  const struct mr_flow_config *config,
			  struct mr_flow_table **ret_table,
			  struct mr_reason *reterr_reason);

/**
 * Free the table and its records; NULL is allowed.
 *
 * Owner: nobody, of the records. Thread: one, the last user.
 */
MR_API void mr_flow_destroy(struct mr_flow_table *table);

/**
 * Find one record by its key.
 *
 * @param key  key_bytes of it, any alignment
 *
 * @return its number, or MR_FLOW_NONE
 *
 * Owner:  unchanged. Thread: the table's.
 * Cost:   two dependent cache misses; a few more if the bucket is full.
 */
MR_API uint32_t mr_flow_find(const struct mr_flow_table *table,
			     const void *key);

/**
 * Find a burst of records.
 *
 * @param      keys     @p n keys in a row, key_bytes each, any alignment; they
 *                      may repeat
 * @param      n        0..MR_FLOW_BURST_MAX
 * @param[out] ret_ids  @p n numbers, MR_FLOW_NONE where there is no record
 *
 * @return how many were found, 0..n
 *
 * Owner: unchanged. Thread: the table's.
 * Cost:   as mr_flow_find(), with the misses overlapped: the longer the burst,
 *         the cheaper. Loads the records found into the cache.
 */
MR_API uint32_t mr_flow_find_bulk(const struct mr_flow_table *table,
				  const void *keys, uint32_t n,
				  uint32_t *ret_ids);

/**
 * Add a record: the key is copied, the rest is zero.
 *
 * @param[out] ret_id  below n_max: the number of the new record or, with
 *                     -EEXIST, of the existing one; otherwise unchanged
 *
 * @return 0, or
 *   -EEXIST  there is a record with this key
 *   -ENOSPC  there are n_max records
 *   -ENOMEM  no memory to grow into
 *
 * Owner:  the table, of the record; the program must not write to the key.
 * Thread: the table's.
 * Cost:   as mr_flow_find(), and the split of one bucket if the table is too
 *         full. Growing into new memory takes one or two system calls, and the
 *         kernel clears an OS page of 4 KiB or 2 MiB.
 */
MR_API int mr_flow_add(struct mr_flow_table *table, const void *key,
		       uint32_t *ret_id);

/**
 * Remove a record. The next mr_flow_add() may reuse its number.
 *
 * @param id  below n_max; if there is no such record, nothing happens
 *
 * Owner: the table, of the memory. Thread: the table's.
 * Cost:   as mr_flow_find(), and the merge of two buckets if the table is too
 *         empty. One or two system calls return memory that becomes free.
 */
MR_API void mr_flow_remove(struct mr_flow_table *table, uint32_t id);

/**
 * The memory of a record.
 *
 * @param id  of an existing record
 *
 * @return its key, followed by the program's data; aligned to 8 bytes, or to
 *         the largest power of two that divides record_bytes
 *
 * Owner:  the table; valid until the record is removed.
 * Thread: the table's. Cost: a multiplication.
 */
static inline void *mr_flow_record(const struct mr_flow_table *table,
				   uint32_t id)
{
	const struct mr_flow_head *head = (const struct mr_flow_head *)table;

	return head->records + id * head->record_bytes;
}

/**
 * The size of a table.
 *
 * @param[in,out] stats  size is read, the rest written. bytes is an upper
 *                       limit, in whole OS pages
 *
 * @return 0, or -EINVAL if stats->size is 0
 *
 * Owner:  unchanged. Thread: the table's.
 * Cost:   grows with n_max: a nanosecond per 2 MiB of records.
 */
MR_API int mr_flow_stats(const struct mr_flow_table *table,
			 struct mr_flow_stats *stats);

/**
 * Iterate over the records in order of their numbers:
 *
 *     for (id = mr_flow_next(table, MR_FLOW_NONE); id != MR_FLOW_NONE;
 *          id = mr_flow_next(table, id))
 *
 * Record @p id may have been removed meanwhile. One added meanwhile is found if
 * its number is higher.
 *
 * @param id  MR_FLOW_NONE for the first record
 *
 * @return the next number, or MR_FLOW_NONE after the last record
 *
 * Owner: unchanged. Thread: the table's.
 * Cost:   as mr_flow_find() for each number that has been in use; parts of the
 *         table without any record are skipped.
 */
MR_API uint32_t mr_flow_next(const struct mr_flow_table *table, uint32_t id);

/**
 * Create an empty wheel.
 *
 * Ticks count modulo 2^32: a tick is later than another if it is less than 2^31
 * ahead of it. They must not go back.
 *
 * @param      n_max      ids are below it; 1..2^31-1
 * @param      n_slots    its horizon in ticks, a power of two, 2..2^20
 * @param      now_tick   the current tick
 * @param[out] ret_wheel  set on success, unchanged on failure
 *
 * @return 0, -EINVAL for a number out of range, -ENOMEM
 *
 * Owner:  the caller, of the wheel.
 * Thread: any; the wheel then belongs to one at a time.
 * Cost:   system calls. Reserves 12 bytes per id; takes the memory when ids are
 *         used and returns it when the wheel is empty.
 */
MR_API int mr_wheel_create(struct mr_ctx *ctx, uint32_t n_max, uint32_t n_slots,
			   uint32_t now_tick, struct mr_wheel **ret_wheel,
			   struct mr_reason *reterr_reason);

/** Free the wheel; NULL is allowed. Owner: nobody. Thread: the last user. */
MR_API void mr_wheel_destroy(struct mr_wheel *wheel);

/**
 * Put @p id on the wheel, or move it if it is there.
 *
 * @param id        below n_max
 * @param due_tick  when mr_wheel_expire() returns it; if that tick has passed,
 *                  the next call does. It may be more than n_slots ahead: the
 *                  wheel then visits the id every n_slots ticks.
 *
 * Owner:  unchanged. Thread: the wheel's.
 * Cost:   at most three cache misses, two more to move it.
 */
MR_API void mr_wheel_set(struct mr_wheel *wheel, uint32_t id,
			 uint32_t due_tick);

/**
 * Take @p id off the wheel; if it is not there, nothing happens.
 *
 * Owner: unchanged. Thread: the wheel's. Cost: at most three cache misses.
 */
MR_API void mr_wheel_cancel(struct mr_wheel *wheel, uint32_t id);

/**
 * Take ids off the wheel that are due, in order of their ticks but in no
 * particular order within one. Call it again while it returns @p n. Ids may be
 * set and cancelled between the calls.
 *
 * @param      now_tick  that of the last call, or a later one
 * @param[out] ret_ids   at most @p n, each once; never before its due tick
 *
 * @return how many there are, 0..n
 *
 * Owner: unchanged. Thread: the wheel's.
 * Cost:   bounded: one load for each tick since the last call, at most n_slots,
 *         and the removal of @p n ids. A call visits at most @p n + 128 ids
 *         that are due beyond the horizon: if there are more, it ends with
 *         fewer than @p n ids, and the next calls return the rest.
 */
MR_API uint32_t mr_wheel_expire(struct mr_wheel *wheel, uint32_t now_tick,
				uint32_t *ret_ids, uint32_t n);

/** @return how many ids are on the wheel. Thread: the wheel's. */
MR_API uint32_t mr_wheel_n(const struct mr_wheel *wheel);

MR_END_DECLS

#endif
