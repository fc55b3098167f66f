/* SPDX-License-Identifier: GPL-2.0-only */
/* What congestion controls use of the kernel's TCP.
 *
 * Only the members that are used are declared; their places are those of the running kernel (CO-RE).
 */
#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

typedef __u8 u8;
typedef __u32 u32;
typedef __u64 u64;

#define OWN __attribute__((preserve_access_index))

#define ANYWHERE 1 /* not for the machine's own namespace alone */
#define NEEDS_ECN 2

struct sock {
	int unused;
} OWN;

struct inet_connection_sock {
	struct {
		u8 pending;
	} icsk_ack;
	u64 icsk_ca_priv[13];
} OWN;

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 snd_una;
	u32 snd_nxt;
	u32 rcv_nxt;
	u32 snd_cwnd;
	u32 max_packets_out;
	u32 snd_ssthresh;
	u32 delivered;
	u32 delivered_ce;
	u8 ecn_flags;
} OWN;

enum tcp_ca_event {
	CA_EVENT_ECN_NO_CE = 4,
	CA_EVENT_ECN_IS_CE = 5,
};

struct ack_sample {
	u32 pkts_acked;
} OWN;

struct tcp_congestion_ops {
	char name[16];
	u32 flags;
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	void (*in_ack_event)(struct sock *sk, u32 flags);
	u32 (*undo_cwnd)(struct sock *sk);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	void (*init)(struct sock *sk);
};

extern void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;
extern u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

static __always_inline int before(u32 one, u32 other)
{
	return (__s32)(one - other) < 0;
}
