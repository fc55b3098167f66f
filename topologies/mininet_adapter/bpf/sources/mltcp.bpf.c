// SPDX-License-Identifier: GPL-2.0-only
/* MLTCP over Reno (HotNets 2024, section 3): the window grows by F(share) packets a round trip, where share is that of
 * the bytes of an iteration which the flow has sent, and F(share) = SLOPE * share + INTERCEPT. Marks and losses halve it.
 *
 * An iteration begins when nothing was acknowledged for "gap_ns". Its bytes are those of the largest one so far; during
 * the first one F is 1, as in Reno.
 */
#include "tcp.h"

#define WHOLE 1024U
#define SLOPE 1792U /* 1.75, of WHOLE */
#define INTERCEPT 256U /* 0.25 */

const volatile u64 gap_ns = 50000000;

struct mltcp {
	u64 last_ns; /* when something was acknowledged last */
	u32 sent; /* packets of this iteration */
	u32 most; /* of the largest iteration; 0 before the first has ended */
	u32 grown; /* by so much of WHOLE packets the window has grown in part */
};

static __always_inline struct mltcp *mltcp_of(struct sock *sk)
{
	return (struct mltcp *)((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

SEC("struct_ops/mltcp_init")
void BPF_PROG(mltcp_init, struct sock *sk)
{
	struct mltcp *state = mltcp_of(sk);

	state->last_ns = bpf_ktime_get_ns();
	state->sent = 0;
	state->most = 0;
	state->grown = 0;
}

static __always_inline u32 factor_of(const struct mltcp *state)
{
	u32 share;

	if (!state->most)
		return WHOLE;
	share = (u64)state->sent * WHOLE / state->most;
	if (share > WHOLE)
		share = WHOLE;
	return ((u64)SLOPE * share >> 10) + INTERCEPT;
}

SEC("struct_ops/mltcp_cong_avoid")
void BPF_PROG(mltcp_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct mltcp *state = mltcp_of(sk);
	u64 now = bpf_ktime_get_ns();
	u32 cwnd = tp->snd_cwnd, more;

	if (now - state->last_ns > gap_ns) {
		if (state->sent > state->most)
			state->most = state->sent;
		state->sent = 0;
	}
	state->last_ns = now;
	state->sent += acked;
	if (cwnd < tp->snd_ssthresh) {
		tcp_reno_cong_avoid(sk, ack, acked);
		return;
	}
	if (tp->max_packets_out < cwnd) /* as Reno: a window that is not used does not grow */
		return;
	state->grown += (u64)factor_of(state) * acked / (cwnd ? cwnd : 1);
	more = state->grown >> 10;
	if (more) {
		state->grown -= more << 10;
		tp->snd_cwnd = cwnd + more;
	}
}

SEC("struct_ops/mltcp_ssthresh")
u32 BPF_PROG(mltcp_ssthresh, struct sock *sk)
{
	return tcp_reno_ssthresh(sk);
}

SEC("struct_ops/mltcp_undo_cwnd")
u32 BPF_PROG(mltcp_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops")
struct tcp_congestion_ops mltcp = {
	.name = "testbed_mltcp",
	.flags = ANYWHERE | NEEDS_ECN,
	.ssthresh = (void *)mltcp_ssthresh,
	.cong_avoid = (void *)mltcp_cong_avoid,
	.undo_cwnd = (void *)mltcp_undo_cwnd,
	.init = (void *)mltcp_init,
};

char LICENSE[] SEC("license") = "GPL";
