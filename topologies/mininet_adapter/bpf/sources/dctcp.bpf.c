// SPDX-License-Identifier: GPL-2.0-only
/* DCTCP (RFC 8257), for kernels that lack it. */
#include "tcp.h"

#define ECN_DEMAND_CWR 4
#define ACK_TIMER 2
#define ACK_NOW 16
#define RECOVERY 3
#define ONE 1024U /* alpha of 1 */
#define SHIFT_G 4 /* g of 1/16, as RFC 8257 recommends */

struct dctcp {
	u32 alpha; /* estimate of the share of bytes that are marked, of ONE */
	u32 end; /* of the window of data that is being observed */
	u32 delivered; /* packets delivered when it began, and those of them with a mark */
	u32 delivered_ce;
	u32 ce; /* receiver: whether the last packet had a mark */
	u32 acknowledged; /* receiver: what was expected before it */
	u32 lost_cwnd; /* the window before the last reduction */
	u32 recovering;
};

static __always_inline struct dctcp *dctcp_of(struct sock *sk)
{
	return (struct dctcp *)((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

static __always_inline void observe_next_window(struct tcp_sock *tp, struct dctcp *state)
{
	state->end = tp->snd_nxt;
	state->delivered = tp->delivered;
	state->delivered_ce = tp->delivered_ce;
}

SEC("struct_ops/dctcp_init")
void BPF_PROG(dctcp_init, struct sock *sk)
{
	struct dctcp *state = dctcp_of(sk);
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	state->alpha = ONE;
	state->acknowledged = tp->rcv_nxt;
	state->ce = 0;
	state->lost_cwnd = 0;
	state->recovering = 0;
	observe_next_window(tp, state);
}

/* A window with marks shrinks by half of their estimated share. */
SEC("struct_ops/dctcp_ssthresh")
u32 BPF_PROG(dctcp_ssthresh, struct sock *sk)
{
	struct dctcp *state = dctcp_of(sk);
	u32 cwnd = ((struct tcp_sock *)sk)->snd_cwnd;
	u32 less = cwnd - ((cwnd * state->alpha) >> 11);

	state->lost_cwnd = cwnd;
	return less < 2 ? 2 : less;
}

SEC("struct_ops/dctcp_in_ack_event")
void BPF_PROG(dctcp_in_ack_event, struct sock *sk, u32 flags)
{
	struct dctcp *state = dctcp_of(sk);
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	u32 delivered, marked, kept;

	if (before(tp->snd_una, state->end))
		return;
	delivered = tp->delivered - state->delivered;
	marked = tp->delivered_ce - state->delivered_ce;
	kept = state->alpha - (state->alpha >> SHIFT_G);
	if (kept == state->alpha && kept)
		kept -= 1; /* what rounding keeps must reach 0 too */
	if (marked)
		kept += (marked << (10 - SHIFT_G)) / (delivered ? delivered : 1);
	state->alpha = kept < ONE ? kept : ONE;
	observe_next_window(tp, state);
}

/* Loss halves the window, as in Reno. */
SEC("struct_ops/dctcp_set_state")
void BPF_PROG(dctcp_set_state, struct sock *sk, u8 new_state)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	struct dctcp *state = dctcp_of(sk);

	if (new_state == RECOVERY && !state->recovering) {
		state->lost_cwnd = tp->snd_cwnd;
		tp->snd_ssthresh = tp->snd_cwnd / 2 < 2 ? 2 : tp->snd_cwnd / 2;
	}
	state->recovering = new_state == RECOVERY;
}

static __always_inline void echo(struct tcp_sock *tp, u32 ce)
{
	if (ce)
		tp->ecn_flags |= ECN_DEMAND_CWR;
	else
		tp->ecn_flags &= ~ECN_DEMAND_CWR;
}

/* The receiver acknowledges at once where marks begin or end, so that the sender can count them (RFC 8257, 3.2). */
SEC("struct_ops/dctcp_cwnd_event")
void BPF_PROG(dctcp_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct dctcp *state = dctcp_of(sk);
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	u32 ce = event == CA_EVENT_ECN_IS_CE;

	if (event != CA_EVENT_ECN_IS_CE && event != CA_EVENT_ECN_NO_CE)
		return;
	if (state->ce != ce) {
		if (tp->inet_conn.icsk_ack.pending & ACK_TIMER) {
			echo(tp, state->ce);
			bpf_tcp_send_ack(tp, state->acknowledged);
		}
		tp->inet_conn.icsk_ack.pending |= ACK_NOW;
	}
	state->acknowledged = tp->rcv_nxt;
	state->ce = ce;
	echo(tp, ce);
}

SEC("struct_ops/dctcp_cong_avoid")
void BPF_PROG(dctcp_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

SEC("struct_ops/dctcp_undo_cwnd")
u32 BPF_PROG(dctcp_undo_cwnd, struct sock *sk)
{
	u32 cwnd = ((struct tcp_sock *)sk)->snd_cwnd, lost = dctcp_of(sk)->lost_cwnd;

	return cwnd > lost ? cwnd : lost;
}

SEC(".struct_ops")
struct tcp_congestion_ops dctcp = {
	.name = "testbed_dctcp",
	.flags = ANYWHERE | NEEDS_ECN,
	.ssthresh = (void *)dctcp_ssthresh,
	.cong_avoid = (void *)dctcp_cong_avoid,
	.set_state = (void *)dctcp_set_state,
	.cwnd_event = (void *)dctcp_cwnd_event,
	.in_ack_event = (void *)dctcp_in_ack_event,
	.undo_cwnd = (void *)dctcp_undo_cwnd,
	.init = (void *)dctcp_init,
};

char LICENSE[] SEC("license") = "GPL";
