// SPDX-License-Identifier: GPL-2.0-only
/* The queues of every link between two interfaces, by level: what waits, marks above a threshold, drops above another.
 *
 * "enters" runs where a packet is about to wait in an interface's queues (clsact egress), "leaves" where it comes out at
 * the other end of the cable (clsact ingress), so that the difference is what waits. Interfaces are numbered in pairs
 * from "first" on: both ends of a cable differ in the lowest bit.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

#define LEVELS 8
#define IP_START 14
#define IP_TCP_HEADERS 40
#define FLAGS_OF_INTEREST 0x3f /* without those of ECN */
#define ONLY_ACK 0x10

struct queue {
	__u64 bytes;
	__u64 packets;
	__u64 longest_bytes;
	__u64 longest_packets;
	__u64 entered;
	__u64 marked;
	__u64 dropped;
};

struct threshold {
	__u32 mark; /* packets that wait: one more gets a mark; 0 for none */
	__u32 drop; /* the same, and it is dropped */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct queue);
} queues SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct threshold);
} thresholds SEC(".maps");

const volatile __u32 first = 0;

/* The level of an IPv4 packet by its class selector; negative for what waits in no level: acknowledgements have a class
 * of their own, and other protocols none. */
static __always_inline int level_of(struct __sk_buff *skb)
{
	__u8 ip[IP_TCP_HEADERS];

	if (bpf_skb_load_bytes(skb, IP_START, ip, sizeof(ip)) || ip[0] != 0x45)
		return -1;
	if (((ip[2] << 8) | ip[3]) == IP_TCP_HEADERS && (ip[33] & FLAGS_OF_INTEREST) == ONLY_ACK)
		return -1;
	return LEVELS - 1 - (ip[1] >> 5);
}

static __always_inline struct queue *queue_of(__u32 interface, int level)
{
	__u32 key = interface * LEVELS + level;

	return bpf_map_lookup_elem(&queues, &key);
}

SEC("tc")
int enters(struct __sk_buff *skb)
{
	__u32 interface = skb->ifindex - first;
	struct threshold *threshold = bpf_map_lookup_elem(&thresholds, &interface);
	int level = level_of(skb);
	struct queue *queue;
	__u64 waiting, bytes;

	if (!threshold || level < 0)
		return TC_ACT_UNSPEC;
	queue = queue_of(interface, level);
	if (!queue)
		return TC_ACT_UNSPEC;
	waiting = __sync_fetch_and_add(&queue->packets, 1);
	if (threshold->drop && waiting >= threshold->drop) {
		__sync_fetch_and_add(&queue->packets, -1);
		__sync_fetch_and_add(&queue->dropped, 1);
		return TC_ACT_SHOT;
	}
	if (threshold->mark && waiting >= threshold->mark && bpf_skb_ecn_set_ce(skb))
		__sync_fetch_and_add(&queue->marked, 1);
	bytes = __sync_fetch_and_add(&queue->bytes, skb->len) + skb->len;
	if (bytes > queue->longest_bytes)
		queue->longest_bytes = bytes;
	if (waiting + 1 > queue->longest_packets)
		queue->longest_packets = waiting + 1;
	__sync_fetch_and_add(&queue->entered, 1);
	return TC_ACT_UNSPEC;
}

SEC("tc")
int leaves(struct __sk_buff *skb)
{
	__u32 interface = (skb->ifindex - first) ^ 1;
	int level = level_of(skb);
	struct queue *queue;

	if (level < 0)
		return TC_ACT_UNSPEC;
	queue = queue_of(interface, level);
	if (!queue)
		return TC_ACT_UNSPEC;
	__sync_fetch_and_add(&queue->packets, -1);
	__sync_fetch_and_add(&queue->bytes, -(__u64)skb->len);
	return TC_ACT_UNSPEC;
}

char LICENSE[] SEC("license") = "GPL";
