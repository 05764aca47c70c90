/* SPDX-License-Identifier: BSD-3-Clause */
/* Create, send and receive parcels. */
#ifndef BASE_PARCEL_H
#define BASE_PARCEL_H

#include <stdbool.h>

#include <millrace/experimental/parcel.h>

struct mr_ctx;

/* An empty parcel. NULL: no memory. */
struct mr_parcel *mri_parcel_create(const struct mr_ctx *ctx);
/* Also closes received fds that were not taken. NULL is allowed. */
void mri_parcel_destroy(struct mr_parcel *parcel);

/* Allocate memory now for what mri_parcel_send() will write: about n_bytes. */
void mri_parcel_reserve(struct mr_parcel *parcel, uint64_t n_bytes);

/* Send it over a SOCK_SEQPACKET socket, which must not block for long. -ENOMEM,
 * or -errno, with a reason. */
int mri_parcel_send(const struct mr_parcel *parcel, int socket_fd,
		    struct mr_reason *reterr_reason);

/* Receive and check one: 0; -ECONNRESET: the other process has exited;
 * -ETIMEDOUT; -EPROTO: it is no parcel, or has another format. */
int mri_parcel_receive(const struct mr_ctx *ctx, int socket_fd, int timeout_ms,
		       struct mr_parcel **ret_parcel,
		       struct mr_reason *reterr_reason);

/* Whether a received file has these seals (F_SEAL_*). Not every file can. */
bool mri_is_sealed(int fd, int seals);

#endif
