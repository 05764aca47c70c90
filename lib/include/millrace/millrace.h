/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_MILLRACE_H
#define MILLRACE_MILLRACE_H

/** @file
 * The stable interface of libmillrace, except driver.h, which is for driver
 * authors. <millrace/experimental/...> may change in any release;
 * <millrace/flow.h> and <millrace/lpm.h> belong to libmillrace-flow.
 */

#include <millrace/answer.h>
#include <millrace/api.h>
#include <millrace/ctx.h>
#include <millrace/dataplane.h>
#include <millrace/error.h>
#include <millrace/frame.h>
#include <millrace/neighbours.h>
#include <millrace/net.h>
#include <millrace/pcapng.h>
#include <millrace/pool.h>
#include <millrace/pool_inline.h>
#include <millrace/port.h>
#include <millrace/port_device.h>
#include <millrace/port_events.h>
#include <millrace/region.h>
#include <millrace/ring.h>
#include <millrace/wire.h>
#include <millrace/worker.h>
#include <millrace/worker_loop.h>

#endif
