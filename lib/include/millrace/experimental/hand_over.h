/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_EXPERIMENTAL_HAND_OVER_H
#define MILLRACE_EXPERIMENTAL_HAND_OVER_H

#include <millrace/api.h>
#include <millrace/dataplane.h>
#include <millrace/error.h>
#include <millrace/experimental/parcel.h>

MR_BEGIN_DECLS

/**
 * @file
 * A running data plane goes from one process to the next: memory, ports and the
 * program's own state. No frame is lost that the rings can hold meanwhile.
 *
 *     old process                         new process
 *     mr_dataplane_offer()      <-------  mr_dataplane_take_over()
 *       forwards                            opens all, and its own tables
 *     mr_dataplane_wait_ready() <-------  mr_dataplane_take_state()
 *       stops its workers
 *     mr_dataplane_hand_over()  ------->    gets its state
 *       waits, at most 2 s      <-------  mr_dataplane_own()
 *     mr_dataplane_close()                starts its workers
 *
 * At each moment exactly one process may touch the rings. A word that both
 * share says which, and changes by compare-and-swap; whoever is too late leaves
 * the rings alone. If anything fails before mr_dataplane_own(), the old process
 * goes on. docs/design/0014-upgrade.md has the proof.
 *
 * The processes share a connected SOCK_SEQPACKET socket, which whoever starts
 * the new process makes (socketpair(2)). Whoever has its end gets all memory
 * and all ports.
 *
 * Supported: xdp:, tap:, vhost:, virtio-user: over a socket, null:, and pair:
 * with both ends. Others are refused by name, all but a pair:'s only end before
 * anything stops.
 */

/**
 * Offer the data plane to the process at the other end of the socket. Call it
 * when the socket is readable: the other process has called
 * mr_dataplane_take_over(). The workers run on. Until mr_dataplane_hand_over(),
 * ports cannot be opened, opened again, or get queues (-EBUSY).
 *
 * @param n_bytes  about how much state mr_dataplane_hand_over() will put. Memory
 *                 for it is allocated now, since that takes longer than writing
 *
 * @return 0, or
 *   -ENOTSUP     a port cannot be handed over, or the region has other pools
 *   -EPROTO      the other process needs another format
 *   -ECONNRESET  it has gone
 *   -ENOMEM, -errno of the socket
 *
 * Owner:  the caller, of the socket, which stays open until
 *         mr_dataplane_hand_over() or mr_dataplane_close() has returned.
 * Thread: as mr_dataplane_open(). Cost: a few ms, and the memory's.
 */
MR_API int mr_dataplane_offer(struct mr_dataplane *dp, int socket_fd,
			      uint64_t n_bytes,
			      struct mr_reason *reterr_reason);

/**
 * Read the answer to an offer. Call it when the socket is readable again, and
 * stop the workers after it has returned 0: a refusal then costs no pause.
 *
 * @return 0, or, with the data plane as before the offer:
 *   -EINVAL      it was not offered
 *   -ECANCELED   the other process refused; the reason says why
 *   -ETIMEDOUT   no answer within ten seconds
 *   -ECONNRESET  it has gone
 *   -errno of the socket
 *
 * Owner: unchanged. Thread: as mr_dataplane_open().
 */
MR_API int mr_dataplane_wait_ready(struct mr_dataplane *dp,
				   struct mr_reason *reterr_reason);

/** Put the program's own state into the parcel, in a folder of its own. Sets of
 * rules can still be changed here. */
typedef void mr_dataplane_put_fn(struct mr_parcel *parcel, void *opaque);

/**
 * Hand over an offered data plane whose workers have stopped. Calls
 * mr_dataplane_wait_ready() if the caller has not. On success only
 * mr_dataplane_close() is left to do, which then frees what this process has,
 * and touches no device.
 *
 * @param put  NULL: the program has no state
 *
 * @return 0, or, with the data plane as before:
 *   -EINVAL      it was not offered
 *   -ECANCELED   the other process refused; the reason says why
 *   -ETIMEDOUT   it did not take it within two seconds
 *   -ECONNRESET  it has gone
 *   -ENODEV      a port has lost its device
 *   -ENOMEM, -errno of the socket
 *
 * Owner:  the other process, of all ports and pages.
 * Thread: as mr_dataplane_open().
 * Cost:   tx rings are drained for at most 5 ms; then it depends on the state.
 */
MR_API int mr_dataplane_hand_over(struct mr_dataplane *dp,
				  mr_dataplane_put_fn *put, void *opaque,
				  struct mr_reason *reterr_reason);

/**
 * Open the data plane of the process at the other end of the socket, which
 * still has it. The workers may not be started yet, the ports not used, and no
 * page allocated: mr_dataplane_take_state() refuses that with -EBUSY.
 *
 * @param config  as for mr_dataplane_open(); specs, page size, headroom and
 *                tailroom must be those of the other process
 *
 * @return 0, or an error of mr_dataplane_open(), or
 *   -EINVAL     the configuration differs in something that needs a restart
 *   -EPROTO     the state has a format or layout that this release cannot read
 *   -ECANCELED  the other process refused; the reason says why
 *   -ETIMEDOUT  it does not answer within ten seconds
 *
 * Owner:  the caller, of the socket, which stays open until mr_dataplane_own()
 *         or mr_dataplane_close() has returned; mr_dataplane_close() leaves the
 *         devices alone.
 * Thread: as mr_dataplane_open().
 */
MR_API int mr_dataplane_take_over(int socket_fd,
				  const struct mr_dataplane_config *config,
				  struct mr_dataplane **ret_dp,
				  struct mr_reason *reterr_reason);

/**
 * Have the other process stop, and get its state. From here on frames wait.
 *
 * @param[out] ret_parcel  with what mr_dataplane_put_fn put
 *
 * @return 0, or as mr_dataplane_take_over(): close the data plane then
 *
 * Owner:  the data plane, of the parcel, until mr_dataplane_own().
 * Thread: as mr_dataplane_open().
 */
MR_API int mr_dataplane_take_state(struct mr_dataplane *dp,
				   struct mr_parcel **ret_parcel,
				   struct mr_reason *reterr_reason);

/**
 * Make the data plane this process's.
 *
 * @return 0: start the workers; or -ECANCELED: it took too long, and the other
 *         process went on; close the data plane
 *
 * Thread: as mr_dataplane_open().
 */
MR_API int mr_dataplane_own(struct mr_dataplane *dp,
			    struct mr_reason *reterr_reason);

/**
 * Leave behind what the next process needs if this one is killed: copies of all
 * fds, and what they are. Give the other end of the socket that this returns to
 * a keeper: a process that outlives this one, such as systemd (sd_notify(3),
 * FDSTORE=1), and passes it to the next one.
 *
 * Call it about once a second. What was left is forgotten when something in it
 * changes (a port is opened again, a setting is made, the pool grows), and when
 * the data plane is closed or handed over. Until the next call a crash is as it
 * is without a keeper: the devices are released.
 *
 * @param[out] ret_socket_fd  the same each time; do not read from it
 *
 * @return 0, or
 *   -ENOTSUP  a port cannot be recovered (supported: xdp:, tap:, null:), has
 *             rules, or the region has other pools
 *   -EBUSY    it is being handed over
 *   -ENOMEM, -errno of the socket
 *
 * Owner:  the data plane, of the socket.
 * Thread: as mr_dataplane_open(). Cost: negligible; about a ms after a change.
 */
MR_API int mr_dataplane_keep(struct mr_dataplane *dp, int *ret_socket_fd,
			     struct mr_reason *reterr_reason);

/**
 * Open the data plane of a process that was killed, with the frames that wait in
 * its rings. A burst per queue is lost, and counters begin at zero; the
 * program's own state is the program's business.
 *
 * @param socket_fd  that of mr_dataplane_keep(), from the keeper
 * @param config     as for mr_dataplane_take_over()
 *
 * @return 0, or an error of mr_dataplane_take_over(), or
 *   -ENOENT  nothing was left: it ended on its own, or something had changed
 *   -EBUSY   it still runs
 *   -EPROTO  its rings contradict each other
 *
 * After an error, the devices are released, so that mr_dataplane_open() can
 * follow.
 *
 * Owner:  the caller, of the socket, which is of no more use.
 * Thread: as mr_dataplane_open().
 */
MR_API int mr_dataplane_recover(int socket_fd,
				const struct mr_dataplane_config *config,
				struct mr_dataplane **ret_dp,
				struct mr_reason *reterr_reason);

/**
 * Tell the other process why this one gives up, so that its user learns it.
 * mr_dataplane_close() does not.
 *
 * Owner: unchanged. Thread: any.
 */
MR_API void mr_dataplane_refuse(int socket_fd, const char *why);

MR_END_DECLS

#endif
