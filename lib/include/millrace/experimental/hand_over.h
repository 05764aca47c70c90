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
 * Hand a running data plane to another process: its memory, its ports, and the
 * program's own state. Frames wait in the rings meanwhile, and none is lost
 * unless a ring fills up.
 *
 *     old process                         new process
 *     mr_dataplane_offer()      <-------  mr_dataplane_take_over()
 *       forwards                            opens ports, allocates tables
 *     mr_dataplane_wait_ready() <-------  mr_dataplane_take_state()
 *       stops its workers
 *     mr_dataplane_hand_over()  ------->    receives the state
 *       waits, at most 2 s      <-------  mr_dataplane_own()
 *     mr_dataplane_close()                starts its workers
 *
 * At any moment only one process may touch the rings. A word in shared memory
 * says which one, and changes only by compare-and-swap. If anything fails
 * before mr_dataplane_own(), the old process continues.
 * docs/design/0014-upgrade.md explains why this is safe.
 *
 * The processes communicate over a connected SOCK_SEQPACKET socket. Whoever
 * starts the new process creates it with socketpair(2). The process at the
 * other end gets all memory and all ports, so pass the socket to nobody else.
 *
 * Supported: xdp:, tap:, vhost:, virtio-user: over a socket, null:, and pair:
 * with both ends. Others are refused by name, all but a pair:'s only end before
 * anything stops.
 */

/**
 * Offer the data plane to the process at the other end of the socket. Call this
 * when the socket is readable, that is, when the other process has called
 * mr_dataplane_take_over(). The workers continue. Until
 * mr_dataplane_hand_over() returns, opening ports and adding queues fails with
 * -EBUSY.
 *
 * @param n_bytes  about how much state mr_dataplane_hand_over() will send. Its
 *                 memory is allocated now, which takes longer than writing to
 *                 it
 *
 * @return 0, or
 *   -ENOTSUP     a port cannot be handed over, or the region has other pools
 *   -EPROTO      the other process cannot read the format that this one writes
 *   -ECONNRESET  the other process has exited
 *   -ENOMEM, -errno of the socket
 *
 * Owner:  the caller, of the socket, which must stay open until
 *         mr_dataplane_hand_over() or mr_dataplane_close() has returned.
 * Thread: as mr_dataplane_open(). Cost: a few ms, and the memory's.
 */
MR_API int mr_dataplane_offer(struct mr_dataplane *dp, int socket_fd,
			      uint64_t n_bytes,
			      struct mr_reason *reterr_reason);

/**
 * Read the answer to an offer. Call this when the socket is readable again, and
 * stop the workers only if it returns 0. Then a refusal causes no pause.
 *
 * @return 0, or, with the data plane as before the offer:
 *   -EINVAL      the data plane was not offered
 *   -ECANCELED   the other process refused; the reason says why
 *   -ETIMEDOUT   no answer within ten seconds
 *   -ECONNRESET  the other process has exited
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
 * Hand over a data plane that was offered and whose workers have stopped. This
 * calls mr_dataplane_wait_ready() if the caller has not. After success, call
 * only mr_dataplane_close(), which then frees the memory of this process and
 * leaves the devices alone.
 *
 * @param put  NULL: the program has no state
 *
 * @return 0, or, with the data plane as before:
 *   -EINVAL      the data plane was not offered
 *   -ECANCELED   the other process refused; the reason says why
 *   -ETIMEDOUT   the other process did not take over within two seconds
 *   -ECONNRESET  the other process has exited
 *   -ENODEV      a port has lost its device
 *   -ENOMEM, -errno of the socket
 *
 * Owner:  the other process, of all ports and pages.
 * Thread: as mr_dataplane_open().
 * Cost:   at most 5 ms for draining tx rings; the rest depends on the state.
 */
MR_API int mr_dataplane_hand_over(struct mr_dataplane *dp,
				  mr_dataplane_put_fn *put, void *opaque,
				  struct mr_reason *reterr_reason);

/**
 * Open the data plane of the process at the other end of the socket, which
 * still owns it. Until mr_dataplane_own() returns, start no worker and use no
 * port. Allocate no page before mr_dataplane_take_state(), which otherwise
 * returns -EBUSY.
 *
 * @param config  as for mr_dataplane_open(); specs, page size, headroom and
 *                tailroom must be those of the other process
 *
 * @return 0, or an error of mr_dataplane_open(), or
 *   -EINVAL     the configurations differ in something that requires a restart
 *   -EPROTO     the state has a format or layout that this release cannot read
 *   -ECANCELED  the other process refused; the reason says why
 *   -ETIMEDOUT  no answer within ten seconds
 *
 * Owner:  the caller, of the socket, which must stay open until
 *         mr_dataplane_own() or mr_dataplane_close() has returned;
 *         mr_dataplane_close() leaves the devices alone.
 * Thread: as mr_dataplane_open().
 */
MR_API int mr_dataplane_take_over(int socket_fd,
				  const struct mr_dataplane_config *config,
				  struct mr_dataplane **ret_dp,
				  struct mr_reason *reterr_reason);

/**
 * Make the other process stop, and receive its state. From now on, frames wait.
 *
 * @param[out] ret_parcel  with the entries of mr_dataplane_put_fn
 *
 * @return 0, or an error of mr_dataplane_take_over(); then close the data plane
 *
 * Owner:  the data plane, of the parcel, until mr_dataplane_own().
 * Thread: as mr_dataplane_open().
 */
MR_API int mr_dataplane_take_state(struct mr_dataplane *dp,
				   struct mr_parcel **ret_parcel,
				   struct mr_reason *reterr_reason);

/**
 * Become the owner of the data plane.
 *
 * @return 0: start the workers; or -ECANCELED: this took too long, and the
 *         other process has continued; close the data plane
 *
 * Thread: as mr_dataplane_open().
 */
MR_API int mr_dataplane_own(struct mr_dataplane *dp,
			    struct mr_reason *reterr_reason);

/**
 * Leave what the next process needs if this one is killed: copies of all fds,
 * and a description of them. Give a copy of the socket that this returns to a
 * keeper: a process that outlives this one and passes the socket to the next
 * one, such as systemd (sd_notify(3), FDSTORE=1).
 *
 * Call it about once a second. Before something changes (a port is opened again,
 * a setting is made, the pool grows), and when the data plane is closed or
 * handed over, the library takes back what was left. Until the next call, a
 * crash releases the devices, as without a keeper.
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
 * Open the data plane of a process that was killed, with the frames that wait
 * in its rings. At most a burst per queue is lost. Counters begin at zero, and
 * steering rules are gone. The program restores its own state.
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
 * Tell the other process why this one gives up, so that it can tell its user.
 * mr_dataplane_close() does not do so.
 *
 * Owner: unchanged. Thread: any.
 */
MR_API void mr_dataplane_refuse(int socket_fd, const char *why);

MR_END_DECLS

#endif
