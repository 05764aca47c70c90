/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_FLOW_H
#define MILLRACE_FLOW_H

#include <stdint.h>

#include <millrace/api.h>
#include <millrace/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @file
 * Flow tables, and a wheel that says which flows have aged.
 *
 *     keys --> mr_flow_find_bulk() --> record numbers --> records
 *                                          |
 *     clock --> mr_wheel_expire() ---------+
 *
 * A table owns its records: fixed-size memory of the program's own layout that
 * begins with the key. Records have numbers and never move; the table grows by
 * one bucket at a time (linear hashing), so that no call pauses for a rehash,
 * and its memory is bounded by the most records it may have. A lookup reads
 * one cache line of the table and the record; lookups by burst overlap those
 * misses.
 *
 * A wheel keeps no clock and reads none: it is told a tick, whose length is the
 * program's business. Flows need not be moved when a packet comes: the program
 * writes the time into its record, and sets the flow again when it falls due
 * and turns out to have been used.
 *
 * Both belong to one thread at a time; there is nothing in them to share.
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

/** Zero is the default of each member but those said to be needed. */
struct mr_flow_config {
	uint32_t size;         /**< sizeof(struct mr_flow_config) */
	uint32_t key_bytes;    /**< needed: 4..MR_FLOW_KEY_MAX, times 4 */
	uint32_t record_bytes; /**< needed: key included, times 8 */
	uint32_t n_max;        /**< needed: most records, below 2^31 */
	uint32_t n_start;      /**< records to have room for at once; 0: few */
	uint32_t reserved;     /**< 0 */
	uint64_t seed; /**< of the hash, kept from those who choose keys;
			*   0: drawn */
};

/** What a table is and has. */
struct mr_flow_stats {
	uint32_t size; /**< sizeof(struct mr_flow_stats), set by the caller */
	uint32_t n;    /**< records */
	uint32_t n_max;
	uint32_t n_buckets;
	uint32_t n_overflows; /**< buckets besides: where one was full */
	uint32_t reserved;
	uint64_t bytes; /**< memory it uses now */
};

/** What mr_flow_record() sees of a table; nothing for programs. */
struct mr_flow_head {
	uint8_t *records;
	uint64_t record_bytes;
};

/**
 * Make a table without records.
 *
 * The addresses that n_max records may need are reserved, memory is taken as
 * the table grows: the first 2 MiB of each of its three parts (buckets,
 * overflow buckets, records) in small OS pages, the rest in huge pages if the
 * kernel has transparent ones. Memory for n_start records is taken at once and
 * kept. A forked child does not have the table.
 *
 * @param[out] ret_table      set on success, left alone on failure
 * @param[out] reterr_reason  set on failure; or NULL
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
 * Owner: unchanged. Thread: the table's. Cost: two cache misses, one after the
 * other; few more in a full bucket.
 */
MR_API uint32_t mr_flow_find(const struct mr_flow_table *table,
			     const void *key);

/**
 * Find records by burst.
 *
 * @param      keys     @p n keys one after the other, key_bytes each, any
 *                      alignment; they may repeat
 * @param      n        0..MR_FLOW_BURST_MAX
 * @param[out] ret_ids  @p n numbers, MR_FLOW_NONE where there is no record
 *
 * @return how many were found, 0..n
 *
 * Owner:  unchanged.
 * Thread: the table's.
 * Cost:   that of mr_flow_find() with the misses overlapped, the better the
 *         longer the burst; the records that were found are in the cache.
 */
MR_API uint32_t mr_flow_find_bulk(const struct mr_flow_table *table,
				  const void *keys, uint32_t n,
				  uint32_t *ret_ids);

/**
 * Add a record: its key is copied, what is behind it is zero.
 *
 * @param[out] ret_id  the record's number, below n_max: of the new one, or with
 *                     -EEXIST, of the one that is there; else left alone
 *
 * @return 0, or
 *   -EEXIST  there is a record with this key
 *   -ENOSPC  there are n_max records
 *   -ENOMEM  no memory to grow into
 *
 * Owner:  the table, of the record; the program writes behind the key only.
 * Thread: the table's.
 * Cost:   that of mr_flow_find(), and one bucket is split where the table is
 *         too full. Where it grows into memory that is new, one or two system
 *         calls, and what the kernel needs to clear an OS page of 4 KiB or
 *         2 MiB.
 */
MR_API int mr_flow_add(struct mr_flow_table *table, const void *key,
		       uint32_t *ret_id);

/**
 * Remove a record. Its number may come back from the next mr_flow_add().
 *
 * @param id  below n_max; where there is no such record, nothing happens
 *
 * Owner:  the table, of the memory.
 * Thread: the table's.
 * Cost:   that of mr_flow_find(), and two buckets are joined where the table is
 *         too empty. Where that leaves memory free, one or two system calls
 *         give it back.
 */
MR_API void mr_flow_remove(struct mr_flow_table *table, uint32_t id);

/**
 * The memory of a record.
 *
 * @param id  of a record that is there
 *
 * @return its key and what the program keeps behind it; aligned to 8 bytes, or
 *         to the largest power of two that divides record_bytes
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
 * What a table is and has.
 *
 * @param[in,out] stats  size is read, the rest written. bytes is what the
 *                       kernel has given at most, in OS pages as they are
 *
 * @return 0, or -EINVAL if stats->size is 0
 *
 * Owner: unchanged. Thread: the table's. Cost: grows with n_max, a
 * nanosecond per 2 MiB of records.
 */
MR_API int mr_flow_stats(const struct mr_flow_table *table,
			 struct mr_flow_stats *stats);

/**
 * The record behind @p id in the order of numbers, for lists:
 *
 *     for (id = mr_flow_next(table, MR_FLOW_NONE); id != MR_FLOW_NONE;
 *          id = mr_flow_next(table, id))
 *
 * The record @p id may have been removed meanwhile. One that is added meanwhile
 * is met if its number is still to come.
 *
 * @param id  MR_FLOW_NONE for the first one
 *
 * @return its number, or MR_FLOW_NONE behind the last one
 *
 * Owner:  unchanged.
 * Thread: the table's.
 * Cost:   that of mr_flow_find() for each number that has been in use; parts
 *         of the table without any record are skipped.
 */
MR_API uint32_t mr_flow_next(const struct mr_flow_table *table, uint32_t id);

/**
 * Make a wheel with nothing on it.
 *
 * Ticks are counted modulo 2^32: of two ticks the later one is that which is
 * less than 2^31 ahead. They must not go back.
 *
 * @param      n_max     ids are below it; 1..2^31-1
 * @param      n_slots   its horizon in ticks, a power of two, 2..2^20
 * @param      now_tick  where it begins
 * @param[out] ret_wheel      set on success, left alone on failure
 * @param[out] reterr_reason  set on failure; or NULL
 *
 * @return 0, -EINVAL for a number out of range, -ENOMEM
 *
 * Owner:  the caller, of the wheel.
 * Thread: any; the wheel then belongs to one at a time.
 * Cost:   system calls. 12 bytes an id are reserved, and taken from the kernel
 *         when ids are used; given back when the wheel is empty.
 */
MR_API int mr_wheel_create(struct mr_ctx *ctx, uint32_t n_max, uint32_t n_slots,
			   uint32_t now_tick, struct mr_wheel **ret_wheel,
			   struct mr_reason *reterr_reason);

/** Free the wheel; NULL is allowed. Owner: nobody. Thread: the last user. */
MR_API void mr_wheel_destroy(struct mr_wheel *wheel);

/**
 * Put @p id on the wheel; where it is on it already, it is moved.
 *
 * @param id        below n_max
 * @param due_tick  when mr_wheel_expire() returns it. If that tick has passed
 *                  the next call does. It may be more than n_slots ahead: the
 *                  wheel then looks at the id every n_slots ticks.
 *
 * Owner: unchanged. Thread: the wheel's. Cost: three cache misses at most, two
 * more where it is moved.
 */
MR_API void mr_wheel_set(struct mr_wheel *wheel, uint32_t id,
			 uint32_t due_tick);

/**
 * Take @p id off the wheel; where it is not on it, nothing happens.
 *
 * Owner: unchanged. Thread: the wheel's. Cost: three cache misses at most.
 */
MR_API void mr_wheel_cancel(struct mr_wheel *wheel, uint32_t id);

/**
 * Take ids off the wheel whose due tick has come, in no particular order
 * within a tick. Call it again while it returns @p n. Ids may be set and
 * cancelled between the calls.
 *
 * @param      now_tick  that of the last call, or a later one
 * @param[out] ret_ids   @p n at most, each once; never before its due tick
 *
 * @return how many there are, 0..n
 *
 * Owner:  unchanged.
 * Thread: the wheel's.
 * Cost:   bounded: one load for each tick since the last call, n_slots at most;
 *         and @p n ids are taken off. Ids that are due beyond the horizon are
 *         looked at when the wheel comes by, @p n + 128 in a call at most: if
 *         they are more, the call ends with less than @p n, and what was due
 *         behind them comes with the next calls.
 */
MR_API uint32_t mr_wheel_expire(struct mr_wheel *wheel, uint32_t now_tick,
				uint32_t *ret_ids, uint32_t n);

/** @return how many ids are on the wheel. Thread: the wheel's. */
MR_API uint32_t mr_wheel_n(const struct mr_wheel *wheel);

#ifdef __cplusplus
}
#endif

#endif
