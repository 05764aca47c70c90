// SPDX-License-Identifier: BSD-3-Clause
//! Declarations of `libmillrace`, `-ffi` and `-flow`, as far as the crate
//! `millrace` needs them. Names, contracts and documentation are those of the
//! C headers: see `<millrace/millrace.h>`.
//!
//! In tests/headers.rs, the C compiler compares each declaration with them.
#![allow(missing_docs, non_camel_case_types)]

use core::ffi::{c_char, c_int, c_void};

macro_rules! opaque {
    ($($name:ident)*) => {
        $(#[repr(C)]
        pub struct $name {
            _private: [u8; 0],
        })*
    };
}
opaque!(mr_answer mr_cache mr_ctx mr_flow_table mr_lpm mr_pool mr_port mr_queue mr_region mr_ring_spsc mr_rules mr_rxq mr_txq mr_workers);

pub const MR_MAX_SEGS: u32 = 18;
pub const MR_BURST_MAX: u32 = 256;
pub const MR_STATS_SLOTS: usize = 16;
pub const MR_FRAME_MORE: u32 = 1;
pub const MR_FRAME_CSUM_VALID: u32 = 1 << 16;
pub const MR_FRAME_CSUM_PARTIAL: u32 = 1 << 17;
pub const MR_META_RSS_HASH: u32 = 1 << 0;
pub const MR_META_RX_TIME: u32 = 1 << 1;
pub const MR_META_VLAN: u32 = 1 << 2;
pub const MR_META_LAUNCH_TIME: u32 = 1 << 5;
pub const MR_META_MARK: u32 = 1 << 7;
pub const MR_MAGAZINE_PAGES: u32 = 64;
pub const MR_MAGAZINE_MAX_PAGES: u32 = 512;
pub const MR_RSS_KEEP_KEY: u32 = 1 << 0;
pub const MR_RSS_KEEP_TABLE: u32 = 1 << 1;
pub const MR_FLOW_NONE: u32 = 0xffff_ffff;
pub const MR_LPM_NONE: u32 = 0xffff_ffff;
pub const MR_SENDS_TO_ANY: u32 = 0xffff_ffff;
pub const MR_FLOW_KEY_MAX: u32 = 64;
pub const MR_FLOW_BURST_MAX: u32 = 256;
pub const MR_RULE_ANY: u16 = 1;
pub const MR_RULE_STATION: u16 = 2;
pub const MR_RULE_FORWARD: u16 = 0;
pub const MR_RULE_DROP: u16 = 1;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct mr_frame {
    pub addr: u64,
    pub len: u32,
    pub flags: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct mr_meta {
    pub valid: u32,
    pub rss_hash: u32,
    pub hash_type: u32,
    pub mark: u32,
    pub rx_ns: u64,
    pub launch_ns: u64,
    pub tx_ns: u64,
    pub rx_clock: u16,
    pub launch_clock: u16,
    pub tx_clock: u16,
    pub vlan_proto: u16,
    pub vlan_tci: u16,
    pub csum_start_bytes: u16,
    pub csum_offset_bytes: u16,
    pub gso_bytes: u16,
    pub gso_type: u16,
    pub reserved: [u16; 3],
}

#[repr(C)]
pub struct mr_reason {
    pub text: [c_char; 384],
}

pub type mr_log_fn = unsafe extern "C" fn(opaque: *mut c_void, level: u32, line: *const c_char);

#[repr(C)]
pub struct mr_ctx_config {
    pub size: u32,
    pub reserved: u32,
    pub opaque: *mut c_void,
    pub log: Option<mr_log_fn>,
    pub alloc: *mut c_void,
    pub free: *mut c_void,
    pub clock: *mut c_void,
    pub sysfs: *const c_char,
}

#[repr(C)]
pub struct mr_pool_config {
    pub size: u32,
    pub n_pages: u32,
    pub page_bytes: u32,
    pub headroom_bytes: u32,
    pub tailroom_bytes: u32,
    pub max_caches: u32,
    pub safety: u32,
    pub region: *mut mr_region,
    pub name: *const c_char,
    pub max_pages: u32,
    pub segment_pages: u32,
    pub low_pages: u32,
    pub numa_node_plus_1: u32,
    pub magazine_pages: u32,
    pub is_elastic: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct mr_pool_stats {
    pub size: u32,
    pub page_bytes: u32,
    pub headroom_bytes: u32,
    pub n_pages: u64,
    pub n_free: u64,
    pub n_in_flight: u64,
    pub n_cached: u64,
    pub n_depot: u64,
    pub n_open: u64,
    pub n_committed: u64,
    pub n_caches: u32,
    pub max_caches: u32,
    pub alloc_fast: u64,
    pub alloc_refill: u64,
    pub alloc_slow: u64,
    pub alloc_slow_high_order: u64,
    pub alloc_empty: u64,
    pub alloc_waive: u64,
    pub recycle_cached: u64,
    pub recycle_cache_full: u64,
    pub recycle_ring: u64,
    pub recycle_ring_full: u64,
    pub recycle_released_refcnt: u64,
    pub free_invalid: u64,
    pub free_double: u64,
    pub free_over: u64,
    pub poison_broken: u64,
    pub depot_cas_failed: u64,
    pub magazine_pages: u32,
    pub reserved: u32,
}

#[repr(C)]
pub struct mr_port_config {
    pub size: u32,
    pub n_workers: u32,
    pub pool: *mut mr_pool,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct mr_port_info {
    pub size: u32,
    pub n_rxqs: u32,
    pub n_txqs: u32,
    pub mtu_bytes: u32,
    pub numa_node: i32,
    pub has_sg: u32,
    pub offloads: u32,
    pub launch_clock: u32,
    pub locked_bytes: u64,
    pub kernel_bytes: u64,
    pub mac: [u8; 6],
    pub has_mac: u8,
    pub reserved_bytes: u8,
    pub name: [c_char; 64],
    pub mode: [c_char; 16],
    pub why: [c_char; 256],
    pub netdev: [c_char; 16],
    pub n_channels: u32,
    pub reserved: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct mr_link {
    pub is_up: u32,
    pub speed_mbps: u32,
    pub is_gone: u32,
    pub is_ended: u32,
    pub is_detached: u32,
    pub is_returned: u32,
    pub reserved: [u32; 2],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct mr_rx_stats {
    pub size: u32,
    pub reserved: u32,
    pub received: u64,
    pub delivered: u64,
    pub offloaded: u64,
    pub passed_to_kernel: u64,
    pub bytes: u64,
    pub drops: [u64; MR_STATS_SLOTS],
    pub events: [u64; MR_STATS_SLOTS],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct mr_tx_stats {
    pub size: u32,
    pub reserved: u32,
    pub accepted: u64,
    pub completed: u64,
    pub pending: u64,
    pub bytes: u64,
    pub drops: [u64; MR_STATS_SLOTS],
    pub events: [u64; MR_STATS_SLOTS],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct mr_partial {
    pub start_bytes: u32,
    pub n_bytes: u32,
    pub field_bytes: u32,
    pub has_no_zero: u32,
    pub reserved: [u32; 4],
}

#[repr(C)]
pub struct mr_workers_config {
    pub size: u32,
    pub n_workers: u32,
    pub pool: *mut mr_pool,
    pub ports: *const *mut mr_port,
    pub sends_to: *const u32,
    pub cores: *const u32,
    pub n_ports: u32,
    pub n_cores: u32,
    pub handoff_entries: u32,
    pub idle: u32,
    pub has_meta: u32,
    pub may_be_fewer: u32,
}

#[repr(C)]
pub struct mr_worker_rxq {
    pub rxq: *mut mr_rxq,
    pub port_idx: u32,
    pub queue_idx: u32,
}

#[repr(C)]
pub struct mr_worker_route {
    pub txq: *mut mr_txq,
    pub handoff: *mut mr_ring_spsc,
    pub handoff_meta: *mut mr_ring_spsc,
    pub queue_idx: u32,
    pub owner_idx: u32,
}

#[repr(C)]
pub struct mr_worker {
    pub workers: *mut mr_workers,
    pub cache: *mut mr_cache,
    pub rxqs: *const mr_worker_rxq,
    pub routes: *const mr_worker_route,
    pub n_rxqs: u32,
    pub n_ports: u32,
    pub idx: u32,
    pub core: u32,
    pub numa_node: i32,
    pub reserved: u32,
    pub reserved_words: [u64; 4],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct mr_worker_stats {
    pub size: u32,
    pub reserved: u32,
    pub busy_ns: u64,
    pub idle_ns: u64,
    pub rounds: u64,
    pub empty_rounds: u64,
    pub sleeps: u64,
    pub handed_off: u64,
    pub handoff_full: u64,
    pub asleep_ns: u64,
}

pub type mr_worker_fn = unsafe extern "C" fn(worker: *mut mr_worker, opaque: *mut c_void) -> c_int;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct mr_flow_ends {
    pub src: u32,
    pub dst: u32,
    pub sport: u16,
    pub dport: u16,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct mr_rule {
    pub r#match: u16,
    pub action: u16,
    pub port: u16,
    pub to: u16,
    pub mac: [u8; 6],
    pub proto: u8,
    pub reserved: u8,
    pub from: mr_flow_ends,
    pub r#as: mr_flow_ends,
}

#[repr(C)]
pub struct mr_rules_config {
    pub size: u32,
    pub n_ports: u32,
    pub ports: *const *mut mr_port,
    pub n_max: u32,
    pub n_hops: u32,
    pub first_id: u16,
    pub id_step: u16,
    pub hands_over: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct mr_rule_stats {
    pub seen_ns: u64,
    pub held_ns: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct mr_rules_sent {
    pub size: u32,
    pub can_send: u32,
    pub has_drops: u32,
    pub reserved: u32,
    pub attempted: u64,
    pub drops: u64,
    pub bytes: u64,
}

#[repr(C)]
pub struct mr_dataplane_config {
    pub size: u32,
    pub n_specs: u32,
    pub specs: *const *const c_char,
    pub ctx: *mut mr_ctx,
    pub name: *const c_char,
    pub n_pages: u32,
    pub kept_pages: u32,
    pub page_bytes: u32,
    pub headroom_bytes: u32,
    pub tailroom_bytes: u32,
    pub safety: u32,
    pub n_workers: u32,
    pub max_workers: u32,
    pub may_idle: u32,
    pub n_cores: u32,
    pub cores: *const u32,
    pub sends_to: *const u32,
    pub handoff_entries: u32,
    pub idle: u32,
    pub may_be_fewer: u32,
    pub takes_meta: u32,
}

#[repr(C)]
pub struct mr_dataplane {
    pub ctx: *mut mr_ctx,
    pub pool: *mut mr_pool,
    pub ports: *const *mut mr_port,
    pub workers: *mut mr_workers,
    pub n_ports: u32,
    pub n_workers: u32,
    pub n_pages: u32,
    pub has_meta: u32,
    pub reserved: [u64; 4],
}

pub type mr_dataplane_drop_fn = unsafe extern "C" fn(
    worker: *mut mr_worker,
    frames: *const mr_frame,
    n: u32,
    opaque: *mut c_void,
);

#[repr(C)]
pub struct mr_rss_config {
    pub size: u32,
    pub keep: u32,
    pub fields: u32,
    pub n_key_bytes: u32,
    pub key: *const u8,
    pub table: *const u32,
    pub n_entries: u32,
    pub reserved: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct mr_steer_rule {
    pub size: u32,
    pub queue: u32,
    pub ethertype: u16,
    pub protocol: u8,
    pub is_ipv6: u8,
    pub dst_mac: [u8; 6],
    pub reserved: u16,
    pub src_port: u16,
    pub src_port_mask: u16,
    pub dst_port: u16,
    pub dst_port_mask: u16,
    pub src: [u8; 16],
    pub src_mask: [u8; 16],
    pub dst: [u8; 16],
    pub dst_mask: [u8; 16],
}

#[repr(C)]
pub struct mr_answer_config {
    pub size: u32,
    pub mac: [u8; 6],
    pub vlans: [u16; 2],
    pub reserved: u16,
    pub n_ipv4: u32,
    pub n_ipv6: u32,
    pub ipv4: *const u32,
    pub ipv6: *mut c_void,
    pub per_s: u32,
    pub burst: u32,
    pub is_router: u32,
    pub link: u32,
    pub neighbours: *mut c_void,
}

#[repr(C)]
pub struct mr_answer_stats {
    pub size: u32,
    pub reserved: u32,
    pub counts: [u64; 16],
}

#[repr(C)]
pub struct mr_flow_config {
    pub size: u32,
    pub key_bytes: u32,
    pub record_bytes: u32,
    pub n_max: u32,
    pub n_start: u32,
    pub reserved: u32,
    pub seed: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct mr_flow_stats {
    pub size: u32,
    pub n: u32,
    pub n_max: u32,
    pub n_buckets: u32,
    pub n_overflows: u32,
    pub reserved: u32,
    pub bytes: u64,
}

#[rustfmt::skip] // one per line, as tests/headers.rs expects
unsafe extern "C" {
    pub fn mr_version() -> *const c_char;
    pub fn mr_strerror(error: c_int) -> *const c_char;
    pub fn mr_ctx_create(config: *const mr_ctx_config, ret_ctx: *mut *mut mr_ctx, why: *mut mr_reason) -> c_int;
    pub fn mr_ctx_destroy(ctx: *mut mr_ctx);

    pub fn mr_pool_create(ctx: *mut mr_ctx, config: *const mr_pool_config, ret_pool: *mut *mut mr_pool, why: *mut mr_reason) -> c_int;
    pub fn mr_pool_destroy(pool: *mut mr_pool, why: *mut mr_reason) -> c_int;
    pub fn mr_pool_region(pool: *const mr_pool) -> *mut mr_region;
    pub fn mr_pool_stats(pool: *const mr_pool, stats: *mut mr_pool_stats) -> c_int;
    pub fn mr_pool_frag_free_bulk(pool: *mut mr_pool, addrs: *const u64, n: u32);
    pub fn mr_region_base(region: *const mr_region) -> *mut c_void;
    pub fn mr_cache_create(pool: *mut mr_pool, ret_cache: *mut *mut mr_cache, why: *mut mr_reason) -> c_int;
    pub fn mr_cache_destroy(cache: *mut mr_cache);
    pub fn mr_cache_adopt(cache: *mut mr_cache) -> *mut mr_cache;
    pub fn mr_cache_flush(cache: *mut mr_cache);
    pub fn mr_frag_alloc(cache: *mut mr_cache, n_bytes: u32) -> u64;

    pub fn mr_frame_push(cache: *mut mr_cache, frame: *mut mr_frame, n_bytes: u32) -> c_int;
    pub fn mr_frame_pull(frame: *mut mr_frame, n_bytes: u32) -> c_int;
    pub fn mr_frame_put(cache: *mut mr_cache, frame: *mut mr_frame, n_bytes: u32) -> c_int;
    pub fn mr_frame_trim(frame: *mut mr_frame, n_bytes: u32) -> c_int;
    pub fn mr_frame_ref(cache: *mut mr_cache, frames: *const mr_frame, n: u32) -> c_int;
    pub fn mr_frame_unshare(cache: *mut mr_cache, frames: *mut mr_frame, n: u32) -> c_int;
    pub fn mr_partial_find(base: *mut c_void, frames: *const mr_frame, meta: *const mr_meta, ret_partial: *mut mr_partial) -> c_int;
    pub fn mr_partial_finish(base: *mut c_void, frames: *const mr_frame, partial: *const mr_partial);
    pub fn mr_frame_free_bulk(cache: *mut mr_cache, frames: *const mr_frame, n: u32);

    pub fn mr_port_open(ctx: *mut mr_ctx, spec: *const c_char, config: *const mr_port_config, ret_port: *mut *mut mr_port, why: *mut mr_reason) -> c_int;
    pub fn mr_pool_size_for(ctx: *mut mr_ctx, specs: *const *const c_char, n_specs: u32, n_workers: u32, n_caches: u32, config: *mut mr_pool_config, why: *mut mr_reason) -> c_int;
    pub fn mr_port_close(port: *mut mr_port);
    pub fn mr_port_info(port: *const mr_port, info: *mut mr_port_info) -> c_int;
    pub fn mr_port_link(port: *const mr_port, ret_link: *mut mr_link) -> c_int;
    pub fn mr_port_poll(port: *mut mr_port) -> u32;
    pub fn mr_port_fd(port: *const mr_port) -> c_int;
    pub fn mr_port_rxq(port: *mut mr_port, i: u32) -> *mut mr_rxq;
    pub fn mr_port_txq(port: *mut mr_port, i: u32) -> *mut mr_txq;
    pub fn mr_port_stats_text(port: *const mr_port, ret_text: *mut c_char, n_bytes: usize) -> usize;
    pub fn mr_port_stats_json(port: *const mr_port, ret_text: *mut c_char, n_bytes: usize) -> usize;
    pub fn mr_rxq_stats(rxq: *const mr_rxq, stats: *mut mr_rx_stats) -> c_int;
    pub fn mr_txq_stats(txq: *const mr_txq, stats: *mut mr_tx_stats) -> c_int;
    pub fn mr_rx_burst(rxq: *mut mr_rxq, cache: *mut mr_cache, frames: *mut mr_frame, n: u32) -> u32;
    pub fn mr_tx_burst(txq: *mut mr_txq, cache: *mut mr_cache, frames: *const mr_frame, n: u32) -> u32;
    /// An rx or tx queue begins with its `mr_queue`.
    pub fn mr_queue_arm(queue: *mut mr_queue) -> c_int;
    pub fn mr_queue_fd(queue: *const mr_queue) -> c_int;
    pub fn mr_rx_burst_meta(rxq: *mut mr_rxq, cache: *mut mr_cache, frames: *mut mr_frame, meta: *mut mr_meta, n: u32) -> u32;
    pub fn mr_tx_burst_meta(txq: *mut mr_txq, cache: *mut mr_cache, frames: *const mr_frame, meta: *const mr_meta, n: u32) -> u32;

    pub fn mr_workers_create(ctx: *mut mr_ctx, config: *const mr_workers_config, ret_workers: *mut *mut mr_workers, why: *mut mr_reason) -> c_int;
    pub fn mr_workers_destroy(workers: *mut mr_workers);
    pub fn mr_workers_get(workers: *mut mr_workers, i: u32) -> *mut mr_worker;
    pub fn mr_workers_start(workers: *mut mr_workers, f: Option<mr_worker_fn>, opaque: *mut c_void, why: *mut mr_reason) -> c_int;
    pub fn mr_workers_stop(workers: *mut mr_workers);
    pub fn mr_workers_join(workers: *mut mr_workers, timeout_ms: u32, why: *mut mr_reason) -> c_int;
    pub fn mr_worker_attach(worker: *mut mr_worker, why: *mut mr_reason) -> c_int;
    pub fn mr_worker_detach(worker: *mut mr_worker);
    pub fn mr_worker_wake(worker: *mut mr_worker);
    pub fn mr_worker_serve(worker: *mut mr_worker) -> u32;
    pub fn mr_worker_wait(worker: *mut mr_worker, n_moved: u32) -> c_int;
    pub fn mr_worker_fd(worker: *mut mr_worker, why: *mut mr_reason) -> c_int;
    pub fn mr_worker_pause(worker: *mut mr_worker, n_moved: u32) -> c_int;
    pub fn mr_worker_resume(worker: *mut mr_worker);
    pub fn mr_worker_hand_off(worker: *mut mr_worker, port_idx: u32, frames: *const mr_frame, meta: *const mr_meta, n: u32) -> u32;
    pub fn mr_worker_stats(worker: *const mr_worker, stats: *mut mr_worker_stats) -> c_int;

    pub fn mr_dataplane_open(config: *const mr_dataplane_config, ret_dp: *mut *mut mr_dataplane, why: *mut mr_reason) -> c_int;
    pub fn mr_dataplane_stop(dp: *mut mr_dataplane);
    pub fn mr_dataplane_drain(dp: *mut mr_dataplane, timeout_ms: u32, f: Option<mr_dataplane_drop_fn>, opaque: *mut c_void);
    pub fn mr_dataplane_text(dp: *const mr_dataplane, ret_text: *mut c_char, n_bytes: usize) -> usize;
    pub fn mr_dataplane_json(dp: *const mr_dataplane, ret_text: *mut c_char, n_bytes: usize) -> usize;
    pub fn mr_dataplane_close_ports(dp: *mut mr_dataplane);
    pub fn mr_dataplane_close(dp: *mut mr_dataplane, why: *mut mr_reason) -> c_int;

    pub fn mr_port_set_filter(port: *mut mr_port, expression: *const c_char, why: *mut mr_reason) -> c_int;
    pub fn mr_port_set_promisc(port: *mut mr_port, on: bool, why: *mut mr_reason) -> c_int;
    pub fn mr_port_set_allmulti(port: *mut mr_port, on: bool, why: *mut mr_reason) -> c_int;
    pub fn mr_port_set_mtu(port: *mut mr_port, mtu_bytes: u32, why: *mut mr_reason) -> c_int;
    pub fn mr_port_set_mac(port: *mut mr_port, mac: *const u8, why: *mut mr_reason) -> c_int;
    pub fn mr_port_set_rss(port: *mut mr_port, config: *const mr_rss_config, why: *mut mr_reason) -> c_int;
    pub fn mr_port_steer(port: *mut mr_port, rule: *const mr_steer_rule, ret_id: *mut u32, why: *mut mr_reason) -> c_int;
    pub fn mr_port_unsteer(port: *mut mr_port, id: u32, why: *mut mr_reason) -> c_int;

    pub fn mr_flow_create(ctx: *mut mr_ctx, config: *const mr_flow_config, ret_table: *mut *mut mr_flow_table, why: *mut mr_reason) -> c_int;
    pub fn mr_flow_destroy(table: *mut mr_flow_table);
    pub fn mr_flow_find(table: *const mr_flow_table, key: *const c_void) -> u32;
    pub fn mr_flow_find_bulk(table: *const mr_flow_table, keys: *const c_void, n: u32, ret_ids: *mut u32) -> u32;
    pub fn mr_flow_add(table: *mut mr_flow_table, key: *const c_void, ret_id: *mut u32) -> c_int;
    pub fn mr_flow_remove(table: *mut mr_flow_table, id: u32);
    pub fn mr_flow_stats(table: *const mr_flow_table, stats: *mut mr_flow_stats) -> c_int;

    pub fn mr_answer_create(cache: *mut mr_cache, config: *const mr_answer_config, ret_answer: *mut *mut mr_answer, why: *mut mr_reason) -> c_int;
    pub fn mr_answer_destroy(answer: *mut mr_answer);
    pub fn mr_answer_burst(answer: *mut mr_answer, frames: *mut mr_frame, metas: *mut mr_meta, n: u32, ret_n_replies: *mut u32) -> u32;
    pub fn mr_answer_stats(answer: *const mr_answer, stats: *mut mr_answer_stats) -> c_int;
    pub fn mr_answer_name(i: u32) -> *const c_char;

    pub fn mr_lpm_create(ctx: *mut mr_ctx, addr_bytes: u32, n_max: u32, ret_lpm: *mut *mut mr_lpm, why: *mut mr_reason) -> c_int;
    pub fn mr_lpm_destroy(lpm: *mut mr_lpm);
    pub fn mr_lpm_add(lpm: *mut mr_lpm, addr: *const c_void, n_bits: u32, next_hop: u32) -> c_int;
    pub fn mr_lpm_remove(lpm: *mut mr_lpm, addr: *const c_void, n_bits: u32) -> c_int;
    pub fn mr_lpm_trim(lpm: *mut mr_lpm) -> u32;
    pub fn mr_lpm_find(lpm: *const mr_lpm, addr: *const c_void) -> u32;
    pub fn mr_lpm_find_bulk(lpm: *const mr_lpm, addrs: *const c_void, n: u32, ret_hops: *mut u32);

    pub fn mr_rules_open(config: *const mr_rules_config, ret_rules: *mut *mut mr_rules, why: *mut mr_reason) -> c_int;
    pub fn mr_rules_stop(rules: *mut mr_rules);
    pub fn mr_rules_close(rules: *mut mr_rules);
    pub fn mr_rules_add(rules: *mut mr_rules, new_rules: *const mr_rule, n: u32, ret_ids: *mut u32) -> u32;
    pub fn mr_rules_remove(rules: *mut mr_rules, ids: *const u32, n: u32);
    pub fn mr_rules_set(rules: *mut mr_rules, id: u32, to: u32, is_active: bool);
    pub fn mr_rules_read(rules: *const mr_rules, ids: *const u32, n: u32, ret_stats: *mut mr_rule_stats);
    pub fn mr_rules_poll(rules: *mut mr_rules) -> u32;
    pub fn mr_rules_fd(rules: *const mr_rules) -> c_int;
    pub fn mr_rules_sent(rules: *mut mr_rules, i: u32, sent: *mut mr_rules_sent) -> c_int;
}
