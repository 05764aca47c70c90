/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registers and bits of the 82574L, the 82576 and its relatives, as the models
 * need them. Taken from the datasheets independently of the driver's own table,
 * so that a wrong number shows.
 */
#ifndef MODEL_INTEL_REGS_H
#define MODEL_INTEL_REGS_H

enum {
	REG_CTRL = 0x0,
	REG_STATUS = 0x8,
	REG_EECD = 0x10,
	REG_EERD = 0x14,
	REG_CTRL_EXT = 0x18,
	REG_MDIC = 0x20,
	REG_VET = 0x38, /* EtherType of tags; 0 after reset, as in QEMU */
	REG_ICR = 0xc0,
	REG_ICS = 0xc8,
	REG_IMS = 0xd0,
	REG_IMC = 0xd8,
	REG_EIAC_82574 = 0xdc,
	REG_IAM = 0xe0,
	REG_IVAR_82574 = 0xe4,
	REG_EITR_82574 = 0xe8,
	REG_RCTL = 0x100,
	REG_TCTL = 0x400,
	REG_GPIE = 0x1514,
	REG_EICS = 0x1520,
	REG_EIMS = 0x1524,
	REG_EIMC = 0x1528,
	REG_EIAC = 0x152c,
	REG_EIAM = 0x1530,
	REG_EICR = 0x1580,
	REG_EITR = 0x1680,
	REG_IVAR = 0x1700,
	REG_IVAR_MISC = 0x1740,
	REG_RX_RINGS = 0x2800,
	REG_TX_RINGS = 0x3800,
	REG_TARC0 = 0x3840,
	REG_STATS = 0x4000,
	REG_STATS_END = 0x4200,
	REG_RXCSUM = 0x5000,
	REG_RLPML = 0x5004,
	REG_RFCTL = 0x5008,
	REG_MTA = 0x5200,
	REG_RAL = 0x5400,
	REG_VFTA = 0x5600,
	REG_MRQC = 0x5818,
	REG_RETA = 0x5c00,
	REG_RSSRK = 0x5c80,
	REG_RX_RINGS_HIGH = 0xc000,
	REG_TX_RINGS_HIGH = 0xe000,
};

/* Relative to the base of a ring's registers. */
enum {
	RING_BAL = 0x0,
	RING_BAH = 0x4,
	RING_LEN = 0x8,
	RING_SRRCTL = 0xc,
	RING_HEAD = 0x10,
	RING_DCA = 0x14,
	RING_TAIL = 0x18,
	RING_CONTROL = 0x28, /* RXDCTL, TXDCTL */
	RING_DROPS = 0x30,   /* RQDPC */
	RING_WBAL = 0x38,    /* TDWBAL */
	RING_WBAH = 0x3c,
};

enum {
	STAT_MPC = 0x4010,
	STAT_GPRC = 0x4074,
	STAT_BPRC = 0x4078,
	STAT_MPRC = 0x407c,
	STAT_GPTC = 0x4080,
	STAT_GORCL = 0x4088,
	STAT_GORCH = 0x408c,
	STAT_GOTCL = 0x4090,
	STAT_GOTCH = 0x4094,
	STAT_RNBC = 0x40a0,
	STAT_RUC = 0x40a4,
	STAT_ROC = 0x40ac,
	STAT_RXERRC = 0x400c,
	STAT_TPR = 0x40d0,
	STAT_TPT = 0x40d4,
};

#define CTRL_GIO_MASTER_DISABLE 0x4u
#define CTRL_SLU 0x40u
#define CTRL_RST 0x04000000u
#define CTRL_DEV_RST 0x20000000u
#define CTRL_VME 0x40000000u
#define CTRL_PHY_RST 0x80000000u

#define STATUS_FD 0x1u
#define STATUS_LU 0x2u
#define STATUS_1000 0x80u
#define STATUS_LAN_INIT_DONE 0x200u
#define STATUS_GIO_MASTER_EN 0x80000u

#define EECD_PRES 0x100u
#define EECD_AUTO_RD 0x200u

#define CTRL_EXT_EIAME 0x01000000u

#define MDIC_WRITE 0x04000000u
#define MDIC_READ 0x08000000u
#define MDIC_READY 0x10000000u
#define MDIC_ERROR 0x40000000u

#define CAUSE_TXDW 0x1u
#define CAUSE_LSC 0x4u
#define CAUSE_RXO 0x40u
#define CAUSE_RXT0 0x80u
#define CAUSE_RXQ0 0x00100000u
#define CAUSE_TXQ0 0x00400000u
#define CAUSE_OTHER 0x01000000u
#define CAUSE_ASSERTED 0x80000000u

#define GPIE_MSIX_MODE 0x10u
#define GPIE_EIAME 0x40000000u

#define QUEUE_ENABLE 0x02000000u
#define TXDCTL_COUNT_DESC 0x00400000u
#define TARC0_BIT_26 0x04000000u

#define SRRCTL_BSIZE_MASK 0x7fu
#define SRRCTL_DESCTYPE_MASK 0x0e000000u
#define SRRCTL_ONEBUF 0x02000000u
#define SRRCTL_DROP_EN 0x80000000u

#define RCTL_EN 0x2u
#define RCTL_UPE 0x8u
#define RCTL_MPE 0x10u
#define RCTL_LPE 0x20u
#define RCTL_LBM_MAC 0x40u
#define RCTL_BAM 0x8000u
#define RCTL_VFE 0x40000u
#define RCTL_BSEX 0x02000000u
#define RCTL_SECRC 0x04000000u

#define TCTL_EN 0x2u
#define TCTL_PSP 0x8u

#define RXCSUM_IPOFL 0x100u
#define RXCSUM_TUOFL 0x200u
#define RXCSUM_PCSD 0x2000u
#define RFCTL_EXTEN 0x8000u

#define MRQC_TCPV4 0x10000u
#define MRQC_IPV4 0x20000u
#define MRQC_IPV6 0x100000u
#define MRQC_TCPV6 0x200000u
#define MRQC_UDPV4 0x400000u
#define MRQC_UDPV6 0x800000u

#define RAH_AV 0x80000000u

/* Transmit descriptors: both chips have these bits in their third dword. */
#define TXD_EOP 0x01000000u
#define TXD_IFCS 0x02000000u
#define TXD_RS 0x08000000u
#define TXD_DEXT 0x20000000u
#define TXD_VLE 0x40000000u
#define TXD_DTYP_MASK 0x00f00000u
#define TXD_82574_DATA 0x00100000u
#define TXD_82574_TSE 0x04000000u
#define TXD_82574_TCP 0x01000000u /* in a context */
#define TXD_82574_IP 0x02000000u
#define TXD_82576_DATA 0x00300000u
#define TXD_82576_CONTEXT 0x00200000u
#define TXD_82576_TSE 0x80000000u
#define TXD_IXSM 1u
#define TXD_TXSM 2u
#define TUCMD_IPV4 0x400u
#define TUCMD_TCP 0x800u
#define TUCMD_SCTP 0x1000u

/* Receive descriptors, written back. */
#define RXD_DD 0x1u
#define RXD_EOP 0x2u
#define RXD_VP 0x8u
#define RXD_UDPCS 0x10u
#define RXD_TCPCS 0x20u
#define RXD_IPCS 0x40u
#define RXD_CE 0x01000000u
#define RXD_TCPE 0x20000000u
#define RXD_IPE 0x40000000u
#define RXD_RXE 0x80000000u
#define RXD_TYPE_IPV4 0x10u
#define RXD_TYPE_IPV6 0x40u
#define RXD_TYPE_TCP 0x100u
#define RXD_TYPE_UDP 0x200u

#endif
