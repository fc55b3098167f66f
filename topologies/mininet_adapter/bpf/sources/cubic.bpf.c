// SPDX-License-Identifier: GPL-2.0-only
/* The kernel's own CUBIC (RFC 9438) under another name: network namespaces may not choose what is not allowed there, and
 * what is allowed is a setting of the whole machine.
 */
#include "tcp.h"

extern void cubictcp_init(struct sock *sk) __ksym;
extern u32 cubictcp_recalc_ssthresh(struct sock *sk) __ksym;
extern void cubictcp_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;
extern void cubictcp_state(struct sock *sk, u8 new_state) __ksym;
extern void cubictcp_cwnd_event(struct sock *sk, enum tcp_ca_event event) __ksym;
extern void cubictcp_acked(struct sock *sk, const struct ack_sample *sample) __ksym;

SEC("struct_ops/cubic_init")
void BPF_PROG(cubic_init, struct sock *sk)
{
	cubictcp_init(sk);
}

SEC("struct_ops/cubic_ssthresh")
u32 BPF_PROG(cubic_ssthresh, struct sock *sk)
{
	return cubictcp_recalc_ssthresh(sk);
}

SEC("struct_ops/cubic_cong_avoid")
void BPF_PROG(cubic_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	cubictcp_cong_avoid(sk, ack, acked);
}

SEC("struct_ops/cubic_set_state")
void BPF_PROG(cubic_set_state, struct sock *sk, u8 new_state)
{
	cubictcp_state(sk, new_state);
}

SEC("struct_ops/cubic_cwnd_event")
void BPF_PROG(cubic_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	cubictcp_cwnd_event(sk, event);
}

SEC("struct_ops/cubic_undo_cwnd")
u32 BPF_PROG(cubic_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC("struct_ops/cubic_pkts_acked")
void BPF_PROG(cubic_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	cubictcp_acked(sk, sample);
}

SEC(".struct_ops")
struct tcp_congestion_ops cubic = {
	.name = "testbed_cubic",
	.flags = ANYWHERE,
	.ssthresh = (void *)cubic_ssthresh,
	.cong_avoid = (void *)cubic_cong_avoid,
	.set_state = (void *)cubic_set_state,
	.cwnd_event = (void *)cubic_cwnd_event,
	.undo_cwnd = (void *)cubic_undo_cwnd,
	.pkts_acked = (void *)cubic_pkts_acked,
	.init = (void *)cubic_init,
};

char LICENSE[] SEC("license") = "GPL";
