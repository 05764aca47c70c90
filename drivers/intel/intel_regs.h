/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registers and descriptor bits under the names of Intel's datasheets: 82574
 * GbE Controller Family (317694), 82576 GbE Controller (320961), I350 (333230),
 * I210 (333016). Names without a chip apply to all.
 *
 * BAR 0, 32 bits each, little endian. Descriptors are 16 bytes; here they are
 * two 64-bit words; BIT_HI is for bits in the upper half of the second.
 */
#ifndef INTEL_REGS_H
#define INTEL_REGS_H

#include <stdint.h>

enum intel_reg {
	/* General */
	INTEL_CTRL = 0x0000,
	INTEL_STATUS = 0x0008,
	INTEL_EECD = 0x0010,
	INTEL_CTRL_EXT = 0x0018,
	INTEL_MDIC = 0x0020,
	INTEL_VET = 0x0038,         /* EtherType of tags */
	INTEL_EXTCNF_CTRL = 0x0f00, /* 82574 */
	INTEL_GCR = 0x5b00,
	INTEL_GCR2 = 0x5b64, /* 82574 */

	/* Interrupts */
	INTEL_ICR = 0x00c0,
	INTEL_IMS = 0x00d0,
	INTEL_IMC = 0x00d8,
	INTEL_EIAC_82574 = 0x00dc,
	INTEL_IAM = 0x00e0,
	INTEL_IVAR_82574 = 0x00e4,
	INTEL_EITR_82574 = 0x00e8, /* + 4 n */
	INTEL_GPIE = 0x1514,
	INTEL_EIMS = 0x1524,
	INTEL_EIMC = 0x1528,
	INTEL_EIAC = 0x152c,
	INTEL_EIAM = 0x1530,
	INTEL_EICR = 0x1580,
	INTEL_EITR = 0x1680, /* + 4 n */
	INTEL_IVAR = 0x1700, /* + 4 n */
	INTEL_IVAR_MISC = 0x1740,

	/* Receive */
	INTEL_RCTL = 0x0100,
	INTEL_RDTR = 0x2820, /* 82574 */
	INTEL_RADV = 0x282c, /* 82574 */
	INTEL_RXCSUM = 0x5000,
	INTEL_RLPML = 0x5004, /* igb */
	INTEL_RFCTL = 0x5008,
	INTEL_MTA = 0x5200,  /* + 4 n, 128 */
	INTEL_RAL = 0x5400,  /* + 8 n, 16 */
	INTEL_RAH = 0x5404,  /* + 8 n */
	INTEL_VFTA = 0x5600, /* + 4 n, 128 */
	INTEL_MRQC = 0x5818,
	INTEL_RETA = 0x5c00,  /* + 4 n, 32: 128 entries of a byte */
	INTEL_RSSRK = 0x5c80, /* + 4 n, 10: a key of 40 bytes */

	/* Transmit */
	INTEL_TCTL = 0x0400,
	INTEL_TIPG = 0x0410,
	INTEL_TIDV = 0x3820,  /* 82574 */
	INTEL_TADV = 0x382c,  /* 82574 */
	INTEL_TARC0 = 0x3840, /* 82574 */

	/* Of a ring: relative to intel_rx_ring() or intel_tx_ring() */
	INTEL_DBAL = 0x00,
	INTEL_DBAH = 0x04,
	INTEL_DLEN = 0x08,
	INTEL_SRRCTL = 0x0c, /* receive, igb */
	INTEL_DH = 0x10,
	INTEL_DT = 0x18,
	INTEL_DCTL = 0x28,   /* RXDCTL, TXDCTL */
	INTEL_RQDPC = 0x30,  /* receive, igb */
	INTEL_TDWBAL = 0x38, /* transmit, igb */
	INTEL_TDWBAH = 0x3c,
};

/* RDBAL(n), TDBAL(n): the first four lie elsewhere. */
static inline uint32_t intel_rx_ring(uint32_t n)
{
	return n < 4 ? 0x2800 + 0x100 * n : 0xc000 + 0x40 * n;
}

static inline uint32_t intel_tx_ring(uint32_t n)
{
	return n < 4 ? 0x3800 + 0x100 * n : 0xe000 + 0x40 * n;
}

enum {
	INTEL_CTRL_SLU = 1u << 6,
	INTEL_CTRL_FRCSPD = 1u << 11,
	INTEL_CTRL_FRCDPX = 1u << 12,
	INTEL_CTRL_RST = 1u << 26,
	INTEL_CTRL_82574_CLEAR = 1u << 29, /* errata settings */
	INTEL_CTRL_RFCE = 1u << 27,
	INTEL_CTRL_TFCE = 1u << 28,
	INTEL_CTRL_VME = 1u << 30,

	INTEL_STATUS_LU = 1u << 1,
	INTEL_STATUS_SPEED = 3u << 6,
	INTEL_STATUS_SPEED_10 = 0u << 6,
	INTEL_STATUS_SPEED_100 = 1u << 6, /* others: 1000 */

	INTEL_EECD_AUTO_RD = 1u << 9,

	INTEL_CTRL_EXT_LINK_MODE = 3u << 22, /* 0: copper */
	INTEL_CTRL_EXT_82574_SET = 1u << 22, /* with it, errata settings */
	INTEL_CTRL_EXT_82574_CLEAR = 1u << 23,
	INTEL_CTRL_EXT_EIAME = 1u << 24,
	INTEL_CTRL_EXT_DRV_LOAD = 1u << 28,

	INTEL_MDIC_REG_SHIFT = 16,
	INTEL_MDIC_PHY_SHIFT = 21,
	INTEL_MDIC_WRITE = 1u << 26,
	INTEL_MDIC_READY = 1u << 28,

	/* PHY: control register, "restart auto-negotiation" (802.3, 22.2.4) */
	INTEL_PHY_BMCR = 0,
	INTEL_PHY_BMCR_RENEGOTIATE = 1u << 12 | 1u << 9,

	INTEL_EXTCNF_CTRL_MDIO_SW = 1u << 5, /* software owns the MDIO */
	INTEL_GCR_CMPL_TMOUT_RESEND = 1u << 16,
	/* 82574, errata settings */
	INTEL_GCR_82574 = 1u << 22,
	INTEL_GCR2_82574 = 1u << 0,

	/* ICR, IMS, IMC */
	INTEL_IRQ_LSC = 1u << 2,
	/* 82574: causes besides LSC that use the vector of OTHER: RXO, MDAC,
	 * SRPD, ACK, MNG */
	INTEL_IRQ_OTHERS = 1u << 6 | 1u << 9 | 1u << 16 | 1u << 17 | 1u << 18,
	INTEL_IRQ_RXQ0 = 1u << 20, /* 82574, these five */
	INTEL_IRQ_RXQ1 = 1u << 21,
	INTEL_IRQ_TXQ0 = 1u << 22,
	INTEL_IRQ_TXQ1 = 1u << 23,
	INTEL_IRQ_OTHER = 1u << 24,

	INTEL_IVAR_82574_VALID = 1u << 3, /* of a field of 4 bits */
	INTEL_IVAR_82574_OTHER_SHIFT = 16,
	INTEL_IVAR_82574_EVERY_WB = 1u << 31,
	INTEL_IVAR_VALID = 1u << 7, /* of a byte */
	INTEL_IVAR_MISC_OTHER_SHIFT = 8,

	INTEL_GPIE_NSICR = 1u << 0,
	INTEL_GPIE_MSIX_MODE = 1u << 4,
	INTEL_GPIE_EIAME = 1u << 30,
	INTEL_GPIE_PBA = 1u << 31,

	INTEL_EITR_INTERVAL_SHIFT = 2, /* microseconds */
	INTEL_EITR_INTERVAL_MAX = 0x1fff,
	INTEL_EITR_CNT_IGNR = 1u << 31,

	INTEL_RCTL_EN = 1u << 1,
	INTEL_RCTL_UPE = 1u << 3,
	INTEL_RCTL_MPE = 1u << 4,
	INTEL_RCTL_LPE = 1u << 5,
	INTEL_RCTL_BAM = 1u << 15,
	INTEL_RCTL_SZ_2048 = 0u << 16,
	INTEL_RCTL_SZ_1024 = 1u << 16,
	INTEL_RCTL_SZ_16384 = 1u << 25 | 1u << 16, /* BSEX: times 16 */
	INTEL_RCTL_SZ_8192 = 1u << 25 | 2u << 16,
	INTEL_RCTL_SZ_4096 = 1u << 25 | 3u << 16,
	INTEL_RCTL_SECRC = 1u << 26,

	INTEL_SRRCTL_ADV_ONEBUF = 1u << 25, /* BSIZEPKT: bits 6:0, in KiB */
	INTEL_SRRCTL_DROP_EN = 1u << 31,

	INTEL_RFCTL_EXTEN = 1u << 15, /* 82574: extended descriptors */

	INTEL_RXCSUM_IPOFL = 1u << 8,
	INTEL_RXCSUM_TUOFL = 1u << 9,
	INTEL_RXCSUM_PCSD = 1u << 13, /* the RSS hash, not a packet checksum */

	INTEL_MRQC_ENABLE_82574 = 1u,
	INTEL_MRQC_ENABLE = 2u,
	INTEL_MRQC_TCPV4 = 1u << 16,
	INTEL_MRQC_IPV4 = 1u << 17,
	INTEL_MRQC_TCPV6_EX = 1u << 18,
	INTEL_MRQC_IPV6 = 1u << 20,
	INTEL_MRQC_TCPV6 = 1u << 21,
	INTEL_MRQC_UDPV4 = 1u << 22, /* igb */
	INTEL_MRQC_UDPV6 = 1u << 23, /* igb */
	INTEL_RETA_82574_SHIFT = 7,

	INTEL_RAH_POOL_1 = 1u << 18, /* 82576, I350 */
	INTEL_RAH_AV = 1u << 31,

	INTEL_TCTL_EN = 1u << 1,
	INTEL_TCTL_PSP = 1u << 3, /* pads to 64 bytes */
	INTEL_TCTL_CT = 15u << 4,
	INTEL_TCTL_COLD = 63u << 12,
	INTEL_TCTL_RTLC = 1u << 24,
	INTEL_TIPG_COPPER = 8u | 8u << 10 | 6u << 20,
	INTEL_TARC0_82574 = 1u << 26,

	INTEL_DCTL_PTHRESH_SHIFT = 0,
	INTEL_DCTL_HTHRESH_SHIFT = 8,
	INTEL_DCTL_WTHRESH_SHIFT = 16,
	INTEL_DCTL_COUNT_DESC = 1u << 22, /* TXDCTL of 82574 */
	INTEL_DCTL_GRAN = 1u << 24,   /* 82574: thresholds are descriptors */
	INTEL_DCTL_ENABLE = 1u << 25, /* igb */

	INTEL_TDWBAL_EN = 1u << 0,
};

/*
 * Receive descriptors. 82574 "extended" and igb "advanced, one buffer" agree in
 * everything used here.
 *
 *     given:   | address of the buffer | 0                              |
 *     written: | RSS type ..  | hash   | status, errors | length | VLAN |
 *               3:0            63:32     31:0             47:32    63:48
 */
enum {
	INTEL_RX_RSS_TYPE = 0xf, /* 0: no hash */
	INTEL_RX_HASH_SHIFT = 32,

	INTEL_RX_DD = 1u << 0,
	INTEL_RX_EOP = 1u << 1,
	INTEL_RX_IXSM = 1u << 2, /* checksums were not checked */
	INTEL_RX_VP = 1u << 3,
	INTEL_RX_UDPCS = 1u << 4,
	INTEL_RX_TCPCS = 1u << 5,
	INTEL_RX_CE = 1u << 24,
	INTEL_RX_SE = 1u << 25,
	INTEL_RX_SEQ = 1u << 26,
	INTEL_RX_CXE = 1u << 28,
	INTEL_RX_TCPE = 1u << 29,
	INTEL_RX_IPE = 1u << 30,
	INTEL_RX_RXE = 1u << 31,
	INTEL_RX_BROKEN = INTEL_RX_CE | INTEL_RX_SE | INTEL_RX_SEQ |
			  INTEL_RX_CXE | INTEL_RX_RXE,
	INTEL_RX_LENGTH_SHIFT = 32,
	INTEL_RX_LENGTH_MASK = 0xffff,
	INTEL_RX_VLAN_SHIFT = 48,
};

/*
 * Transmit descriptors, data: the address, and in the second word
 *
 *     82574:  31:0 length and command;    39:32 status; 47:40 options; VLAN
 *     igb:    31:0 length and command;    63:32 status, context, options,
 * PAYLEN
 *
 * A context descriptor describes the data descriptors that follow: what to
 * checksum, and the lengths of headers.
 */
enum {
	INTEL_TX_EOP = 1u << 24,
	INTEL_TX_IFCS = 1u << 25,
	INTEL_TX_TSE_82574 = 1u << 26,
	INTEL_TX_RS = 1u << 27,
	INTEL_TX_DEXT = 1u << 29,
	INTEL_TX_VLE = 1u << 30,
	INTEL_TX_TSE = 1u << 31,
	INTEL_TX_DTYP_82574 = 1u << 20, /* data; a context has 0 */
	INTEL_TX_DTYP_CTXT = 2u << 20,  /* igb */
	INTEL_TX_DTYP_DATA = 3u << 20,  /* igb */

	INTEL_TX_DD_SHIFT = 32,
	INTEL_TX_POPTS_SHIFT = 40, /* both */
	INTEL_TX_POPTS_IXSM = 1u,
	INTEL_TX_POPTS_TXSM = 2u,
	INTEL_TX_VLAN_82574_SHIFT = 48,
	INTEL_TX_PAYLEN_SHIFT = 46, /* igb */
	INTEL_TX_PAYLEN_MAX = 0x3ffff,

	/* 82574: second word of a context */
	INTEL_CTX_82574_TCP = 1u << 24,
	INTEL_CTX_82574_IP = 1u << 25,
	INTEL_CTX_82574_TSE = 1u << 26,
	INTEL_CTX_82574_HDRLEN_SHIFT = 40,
	INTEL_CTX_82574_MSS_SHIFT = 48,

	/* igb: first word of a context, then the second */
	INTEL_CTX_MACLEN_SHIFT = 9,
	INTEL_CTX_VLAN_SHIFT = 16,
	INTEL_CTX_IPV4 = 1u << 10,
	INTEL_CTX_TCP = 1u << 11,
	INTEL_CTX_L4LEN_SHIFT = 40,
	INTEL_CTX_MSS_SHIFT = 48,
};

#endif
