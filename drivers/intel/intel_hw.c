/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The controller: reset, the order of initialisation, stop, link.
 *
 *     mask interrupts, stop units, 10 ms, reset, reload NVM
 *     --> addresses, filters --> rings --> bus master --> units on
 *     --> rings report running --> RDT --> interrupts
 *
 * Each wait has a deadline. A register that is never all ones but reads so
 * means that the device is gone; nothing more is written to it.
 *
 * Source: the datasheets' chapter 4, "Initialization"; the kernel's
 * tools/testing/selftests/vfio/lib/drivers/igb/igb.c.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include <millrace/wire.h>

#include "intel.h"

enum {
	STOP_US = 10000, /* for transfers in progress */
	RESET_US = 1000, /* before registers may be touched again */
	RESET_MAX_US = 100000,
	NVM_MAX_US = 20000,
	PHY_CONFIG_US = 25000, /* 82574 */
	MDIO_STEP_US = 2000,
	MDIO_TRIES = 10,
	PHY_MAX_US = 2000,
	RING_MAX_US = 100000,
	PHY_ADDRESS = 1,
};

static void pause_us(uint32_t n_us)
{
	const struct timespec time = { .tv_nsec = (long)n_us * 1000 };

	nanosleep(&time, NULL);
}

static int wait_for(struct intel_port *port, uint32_t reg, uint32_t mask,
		    uint32_t value, uint32_t timeout_us)
{
	return mr_pci_wait32(port->pci, &port->bar, reg, mask, value,
			     timeout_us);
}

int mri_intel_check(struct intel_port *port, struct mr_reason *reason)
{
	if (!intel_is_gone(port) &&
	    intel_read(port, INTEL_STATUS) == UINT32_MAX)
		__atomic_store_n(&port->is_gone, 1, __ATOMIC_RELAXED);
	if (intel_is_gone(port))
		return mr_fail(reason, -ENODEV,
			       "%s: the device is gone, or had an error on "
			       "the bus: close the port",
			       port->base.info->name);
	return 0;
}

/* Stop frames and interrupts, except those in progress. */
static void quiesce(struct intel_port *port)
{
	intel_write(port, INTEL_IMC, UINT32_MAX);
	if (port->chip->is_igb)
		intel_write(port, INTEL_EIMC, UINT32_MAX);
	intel_write(port, INTEL_RCTL, 0);
	intel_write(port, INTEL_TCTL, INTEL_TCTL_PSP);
	(void)intel_read(port, INTEL_STATUS); /* flush the writes */
	pause_us(STOP_US);
}

/*
 * 82574: firmware uses the PHY as well, and the bit sticks only after it
 * releases it, so keep asking. False: firmware holds it.
 */
static bool take_mdio(struct intel_port *port)
{
	if (port->chip->is_igb)
		return true;
	for (uint32_t i = 0; i < MDIO_TRIES; i++) {
		if (i > 0)
			pause_us(MDIO_STEP_US);
		intel_write(port, INTEL_EXTCNF_CTRL,
			    intel_read(port, INTEL_EXTCNF_CTRL) |
				    INTEL_EXTCNF_CTRL_MDIO_SW);
		if (intel_read(port, INTEL_EXTCNF_CTRL) &
		    INTEL_EXTCNF_CTRL_MDIO_SW)
			return true;
	}
	return false;
}

static void give_mdio(struct intel_port *port)
{
	if (port->chip->is_igb)
		return;
	intel_write(port, INTEL_EXTCNF_CTRL,
		    intel_read(port, INTEL_EXTCNF_CTRL) &
			    ~INTEL_EXTCNF_CTRL_MDIO_SW);
}

static int reset(struct intel_port *port)
{
	bool has_mdio;
	int err;

	quiesce(port);
	has_mdio = take_mdio(port); /* reset with or without it */
	intel_write(port, INTEL_CTRL,
		    intel_read(port, INTEL_CTRL) | INTEL_CTRL_RST);
	pause_us(RESET_US);
	err = wait_for(port, INTEL_CTRL, INTEL_CTRL_RST, 0, RESET_MAX_US);
	if (err < 0)
		return err;
	/* A device without NVM never sets it; reset it anyway. */
	err = wait_for(port, INTEL_EECD, INTEL_EECD_AUTO_RD, INTEL_EECD_AUTO_RD,
		       NVM_MAX_US);
	if (err == -ENODEV)
		return err;
	if (!port->chip->is_igb)
		pause_us(PHY_CONFIG_US);
	if (has_mdio)
		give_mdio(port);
	intel_write(port, INTEL_IMC, UINT32_MAX);
	(void)intel_read(port, INTEL_ICR);
	return 0;
}

static void read_mac(struct intel_port *port)
{
	static const uint8_t none[6];
	struct mr_port_info *info = port->base.info;
	const uint32_t low = intel_read(port, INTEL_RAL);
	const uint32_t high = intel_read(port, INTEL_RAH);

	memcpy(info->mac, &low, 4);
	memcpy(info->mac + 4, &high, 2);
	info->has_mac = !(info->mac[0] & 1) &&
			memcmp(info->mac, none, sizeof(none)) != 0;
	if (info->has_mac)
		return;
	memset(info->mac, 0, sizeof(info->mac));
	mr_log(port->base.ctx, MR_LOG_WARNING,
	       "%s: its NVM has no MAC address; set one with mr_port_set_mac()",
	       info->name);
}

int mri_intel_reset(struct intel_port *port, struct mr_reason *reason)
{
	int err = mri_intel_check(port, reason);

	if (err < 0)
		return err;
	err = reset(port);
	if (err == -ENODEV)
		return mri_intel_check(port, reason);
	if (err < 0)
		return mr_fail(
			reason, -EIO,
			"%s: the device did not come out of reset within %d ms",
			port->base.info->name, RESET_MAX_US / 1000);
	read_mac(port);
	return 0;
}

/* Have the PHY negotiate, which also powers it up. */
static void start_phy(struct intel_port *port)
{
	if (!take_mdio(port)) {
		mr_log(port->base.ctx, MR_LOG_WARNING,
		       "%s: firmware holds the PHY; its link is left alone",
		       port->base.info->name);
		return;
	}
	intel_write(port, INTEL_MDIC,
		    INTEL_PHY_BMCR_RENEGOTIATE |
			    INTEL_PHY_BMCR << INTEL_MDIC_REG_SHIFT |
			    PHY_ADDRESS << INTEL_MDIC_PHY_SHIFT |
			    INTEL_MDIC_WRITE);
	/* A PHY that does not respond may still have a link. */
	(void)wait_for(port, INTEL_MDIC, INTEL_MDIC_READY, INTEL_MDIC_READY,
		       PHY_MAX_US);
	give_mdio(port);
}

static void start_mac(struct intel_port *port)
{
	uint32_t ctrl = intel_read(port, INTEL_CTRL);
	uint32_t ext =
		intel_read(port, INTEL_CTRL_EXT) | INTEL_CTRL_EXT_DRV_LOAD;

	if (port->chip->is_igb) {
		ext &= ~(uint32_t)INTEL_CTRL_EXT_LINK_MODE;
		/* Do not repeat transfers to unmapped memory. */
		intel_write(port, INTEL_GCR,
			    intel_read(port, INTEL_GCR) &
				    ~(uint32_t)INTEL_GCR_CMPL_TMOUT_RESEND);
	} else {
		ext = (ext & ~(uint32_t)INTEL_CTRL_EXT_82574_CLEAR) |
		      INTEL_CTRL_EXT_82574_SET;
		ctrl &= ~(uint32_t)INTEL_CTRL_82574_CLEAR;
	}
	intel_write(port, INTEL_CTRL_EXT, ext);
	ctrl &= ~(uint32_t)(INTEL_CTRL_FRCSPD | INTEL_CTRL_FRCDPX |
			    INTEL_CTRL_RFCE | INTEL_CTRL_TFCE | INTEL_CTRL_VME);
	ctrl |= INTEL_CTRL_SLU | (port->options.vlan ? INTEL_CTRL_VME : 0u);
	intel_write(port, INTEL_CTRL, ctrl);
	/* Not all set it on reset: QEMU's 82574 does not. */
	intel_write(port, INTEL_VET, MR_ETHER_VLAN);
	start_phy(port);
}

/* Program an empty ring. */
static void start_ring(struct intel_port *port, uint32_t ring,
		       const struct mr_dma *dma, uint32_t n)
{
	mr_bar_write64(&port->bar, ring + INTEL_DBAL, dma->iova);
	intel_write(port, ring + INTEL_DLEN,
		    n * (uint32_t)sizeof(struct intel_desc));
	intel_write(port, ring + INTEL_DH, 0);
	intel_write(port, ring + INTEL_DT, 0);
}

/* Thresholds: fetch at least HTHRESH when fewer than PTHRESH are left. */
static uint32_t thresholds(const struct intel_port *port, uint32_t host)
{
	/* WTHRESH 1: each descriptor is written back at once. */
	if (!port->chip->is_igb)
		return INTEL_DCTL_GRAN | 1u << INTEL_DCTL_WTHRESH_SHIFT;
	return 8u << INTEL_DCTL_PTHRESH_SHIFT |
	       host << INTEL_DCTL_HTHRESH_SHIFT |
	       1u << INTEL_DCTL_WTHRESH_SHIFT | INTEL_DCTL_ENABLE;
}

static void start_rxq(struct intel_port *port, uint32_t i)
{
	const uint32_t ring = intel_rx_ring(i);

	start_ring(port, ring, &port->rxqs[i].dma, port->options.n_rx_entries);
	/* A full queue must not stop the others. */
	if (port->chip->is_igb)
		intel_write(port, ring + INTEL_SRRCTL,
			    port->buf_bytes / 1024 | INTEL_SRRCTL_ADV_ONEBUF |
				    (port->n_queues > 1 ? INTEL_SRRCTL_DROP_EN :
							  0u));
	intel_write(port, ring + INTEL_DCTL, thresholds(port, 8));
}

static void start_txq(struct intel_port *port, uint32_t i)
{
	const struct intel_txq *txq = &port->txqs[i];
	const uint32_t n = port->options.n_tx_entries;
	const uint32_t ring = intel_tx_ring(i);
	uint32_t control = thresholds(port, 1);

	start_ring(port, ring, &txq->dma, n);
	if (txq->head != NULL) {
		const uint64_t head_iova =
			txq->dma.iova + n * sizeof(struct intel_desc);

		intel_write(port, ring + INTEL_TDWBAH,
			    (uint32_t)(head_iova >> 32));
		intel_write(port, ring + INTEL_TDWBAL,
			    (uint32_t)head_iova | INTEL_TDWBAL_EN);
	}
	if (!port->chip->is_igb)
		control |= INTEL_DCTL_COUNT_DESC;
	intel_write(port, ring + INTEL_DCTL, control);
}

/* Specific to the 82574. */
static void start_82574(struct intel_port *port)
{
	if (port->chip->is_igb)
		return;
	/* Errata: otherwise PCIe completions may get lost, and tx stops. */
	intel_write(port, INTEL_GCR,
		    intel_read(port, INTEL_GCR) | INTEL_GCR_82574);
	intel_write(port, INTEL_GCR2,
		    intel_read(port, INTEL_GCR2) | INTEL_GCR2_82574);
	intel_write(port, INTEL_RFCTL,
		    intel_read(port, INTEL_RFCTL) | INTEL_RFCTL_EXTEN);
	intel_write(port, INTEL_RDTR, 0);
	intel_write(port, INTEL_RADV, 0);
	intel_write(port, INTEL_TIDV, 0);
	intel_write(port, INTEL_TADV, 0);
	intel_write(port, INTEL_TIPG, INTEL_TIPG_COPPER);
	intel_write(port, INTEL_TARC0,
		    intel_read(port, INTEL_TARC0) | INTEL_TARC0_82574);
}

/* Start the device, which has all of its rings. */
static int run(struct intel_port *port, struct mr_reason *reason)
{
	port->rctl |= INTEL_RCTL_EN;
	intel_write(port, INTEL_RCTL, port->rctl);
	intel_write(port, INTEL_TCTL,
		    INTEL_TCTL_EN | INTEL_TCTL_PSP | INTEL_TCTL_CT |
			    INTEL_TCTL_COLD | INTEL_TCTL_RTLC);
	for (uint32_t i = 0; i < port->n_queues; i++) {
		const uint32_t rx = intel_rx_ring(i), tx = intel_tx_ring(i);

		if (port->chip->is_igb &&
		    (wait_for(port, rx + INTEL_DCTL, INTEL_DCTL_ENABLE,
			      INTEL_DCTL_ENABLE, RING_MAX_US) < 0 ||
		     wait_for(port, tx + INTEL_DCTL, INTEL_DCTL_ENABLE,
			      INTEL_DCTL_ENABLE, RING_MAX_US) < 0))
			return mr_fail(
				reason, -EIO,
				"%s: queue %u did not start within %d ms",
				port->base.info->name, i, RING_MAX_US / 1000);
		/* All but one: RDT == RDH would mean none. */
		intel_write(port, rx + INTEL_DT, port->rxqs[i].mask);
	}
	return 0;
}

int mri_intel_start(struct intel_port *port, struct mr_reason *reason)
{
	int err;

	start_mac(port);
	mri_intel_filter_start(port);
	start_82574(port);
	for (uint32_t i = 0; i < port->n_queues; i++) {
		start_rxq(port, i);
		start_txq(port, i);
	}
	mri_intel_rss_start(port);
	if (mr_pci_set_bus_master(port->pci, true) < 0)
		err = mr_fail(reason, -EIO, "%s: cannot enable bus mastering",
			      port->base.info->name);
	else
		err = run(port, reason);
	if (err == 0)
		mri_intel_irq_start(port);
	/* If the device is gone, that is the better reason. */
	return mri_intel_check(port, reason) < 0 ? -ENODEV : err;
}

void mri_intel_stop(struct intel_port *port)
{
	if (mri_intel_check(port, NULL) == 0)
		quiesce(port);
	/* It can no longer access memory, whatever it does. */
	(void)mr_pci_set_bus_master(port->pci, false);
	if (!intel_is_gone(port))
		(void)reset(port);
}

int mri_intel_look(struct intel_port *port)
{
	const uint32_t status = intel_read(port, INTEL_STATUS);
	const uint32_t is_up = (status & INTEL_STATUS_LU) != 0;
	uint32_t speed_mbps = 1000;
	int n_events;

	if (status == UINT32_MAX) {
		__atomic_store_n(&port->is_gone, 1, __ATOMIC_RELAXED);
		return 0;
	}
	if ((status & INTEL_STATUS_SPEED) == INTEL_STATUS_SPEED_10)
		speed_mbps = 10;
	else if ((status & INTEL_STATUS_SPEED) == INTEL_STATUS_SPEED_100)
		speed_mbps = 100;
	n_events = is_up != port->is_up;
	__atomic_store_n(&port->is_up, is_up, __ATOMIC_RELAXED);
	__atomic_store_n(&port->speed_mbps, is_up ? speed_mbps : 0,
			 __ATOMIC_RELAXED);
	return n_events;
}
