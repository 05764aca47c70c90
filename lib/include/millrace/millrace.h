/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_MILLRACE_H
#define MILLRACE_MILLRACE_H

/** @file
 * The whole public interface, but for driver.h, which is for driver authors.
 */

#include <millrace/api.h>
#include <millrace/ctx.h>
#include <millrace/error.h>
#include <millrace/flow.h>
#include <millrace/flow_way.h>
#include <millrace/frag.h>
#include <millrace/frame.h>
#include <millrace/gro.h>
#include <millrace/net.h>
#include <millrace/objpool.h>
#include <millrace/offload.h>
#include <millrace/page.h>
#include <millrace/pci_info.h>
#include <millrace/pool.h>
#include <millrace/pool_inline.h>
#include <millrace/port.h>
#include <millrace/port_device.h>
#include <millrace/port_queues.h>
#include <millrace/region.h>
#include <millrace/ring.h>
#include <millrace/wire.h>
#include <millrace/worker.h>
#include <millrace/worker_loop.h>

#endif
