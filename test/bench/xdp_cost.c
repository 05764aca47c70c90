/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The AF_XDP driver over the fake kernel of its unit tests (measured.h). The
 * kernel's part does not count: it fills the rx ring between the bursts, and
 * its work in sendto() is in __wrap_sendto(), which nic_bench.py leaves out.
 */
#include <string.h>

#include "measured.h"
#include "model/fake_kernel.h"
#include "support/test.h"

void port_open(const char *device, struct measured_port *ret)
{
	const bool has_meta = strcmp(device, "xdp, meta") == 0;

	fake_open((struct fake_config){ 0 });
	fake.rxq->meta_magic = has_meta ? 1u << 31 : 0;
	*ret = (struct measured_port){ &fake.rxq->base, &fake.txq->base,
				       fake.cache, has_meta };
}

void port_close(void)
{
	fake_close();
}

void port_inject(uint32_t n)
{
	const struct xdp_rx_meta meta = {
		.word = 1u << 31 | XDP_RX_META_HASH | XDP_RX_META_TIME,
	};

	while (n-- > 0) {
		const uint64_t addr = fake_receive(MEASURED_BYTES, 0);

		if (fake.rxq->meta_magic != 0)
			memcpy((uint8_t *)fake.port->base.base + addr -
				       sizeof(meta),
			       &meta, sizeof(meta));
	}
}

void port_make(struct mr_frame *frames, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		frames[i] = fake_frame(MEASURED_BYTES, 0);
}

void port_drain(void)
{
}
