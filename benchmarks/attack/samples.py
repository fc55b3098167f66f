"""What is right before it is mutated: scenarios with every key, a sweep, a small trace of each format, checks."""

from __future__ import annotations

from typing import Final

FULL: Final = """\
name: full
description: &text every key of a scenario
fabric: {kind: clos, hosts: 4, gpus_per_host: 4, nics_per_host: 2, ports_per_nic: 2, tors: 2, aggregations: 2,
         port_rate: 100Gbps, fabric_rate: 100Gbps, parallel_links: 2, bonded: false, pcie_rate: 256Gbps,
         nvlink_rate: 2400Gbps, intra_host: pcie, pcie_queues: ideal}
jobs:
  - &job {name: big, model: bert, gpus: 4, start: 1s, iterations: 100, compute: 100ms, communication: 350MB,
          overlap: 0.5, collective: ring, jitter: 0.1, stragglers: [{gpu: h0g0, factor: 1.3}],
          gradients: {bits: 8, compression: 0.5, every: 2, buckets: 4, background: false, ralp: false}}
  - {name: moe, model: moe, placement: ["h1:0-3", "h2:0,2", h3g1], flops: 3.5TFLOP,
     experts: {popularity: [5, 3, 2, 1], routed: [4, 4, 2, 1], placement: popular, corrected: true, inference: false}}
  - {name: guest, model: resnet, share_gpus_with: big, gradients: {partitions: 4}}
  - {<<: *job, name: more, count: 2, gpus: 1, stragglers: []}
placement_policy: spread
schedulers: [ecmp, {name: crux, fairness: 0.5}, {name: cassini, step: 5.0, grid: 0.01}, {name: hedera, threshold: 0.1},
  {name: pias, thresholds: [1MB, 2MB]}, {name: pfabric, ratio: 10},
  {name: fixed, levels: {big: 0}, rates: {big: 1Gbps}}]
measure: {iterations: 2, warmup: 1, time_limit: 5s}
scale: {bandwidth: 32000, time: 2, mtu: 9000}
levels: 8
failures: [{link: tor0->agg0.0, at: 1s, until: 2s}]
seed: 3
checks: ["crux.gpu_utilization - ecmp.gpu_utilization >= -5 points", "crux.big.jct_s < 1e9s"]
"""
MANAGED: Final = """\
fabric: {kind: clos, hosts: 4, gpus_per_host: 4, nics_per_host: 2, tors: 2, aggregations: 2, port_rate: 100Gbps,
         fabric_rate: 100Gbps}
jobs:
  - {name: one, model: bert, gpus: 4, iterations: 4, min_gpus: 2, max_gpus: 8, virtual_cluster: a}
  - {name: two, model: resnet, gpus: 8, iterations: 4, start: 1s, virtual_cluster: b, opportunistic: true}
manager: {name: consolidated, queue: {name: fair, shares: {a: {weight: 2.0, least: 1}}, backfill: true},
          policy: {name: tiresias, limits: [10.0, 20.0], promote: 2.0, slice_s: 1.0, restart_s: 0.5},
          placer: {name: locality, tries: 2},
          capacity: {name: inference, hosts: [h3], mean: 0.5, swing: 0.3, every_s: 60},
          job_failures: {retries: 2, prerun: true, blacklist: true, early_stop_at: 0.5}}
schedulers: [ecmp, crux]
measure: {iterations: 2, warmup: 0, time_limit: 5s}
"""
THREE_LAYERS: Final = """\
fabric: {kind: clos3, pods: 2, hosts: 4, gpus_per_host: 2, nics_per_host: 1, tors_per_pod: 1, aggregations_per_pod: 2,
         cores: 2, port_rate: 100Gbps, fabric_rate: 100Gbps, core_rate: 50Gbps}
jobs: [{name: one, model: bert, gpus: 4, compute: 1s, communication: 1GB}]
schedulers: [ecmp]
"""
DOUBLE_SIDED: Final = """\
fabric: {kind: double-sided, hosts: 6, gpus_per_host: 2, nics_per_host: 1, tors: 6, aggregations: 3, cores: 2}
jobs: [{name: one, model: gpt, gpus: 8, collective: alltoall}]
schedulers: [sincronia, taccl-star]
"""
SMALL: Final = """\
fabric: {kind: clos, hosts: 4, gpus_per_host: 2, nics_per_host: 1, tors: 2, aggregations: 2, port_rate: 100Gbps,
         fabric_rate: 100Gbps}
jobs:
  - {name: one, model: bert, gpus: 4, iterations: 20, compute: 100ms, communication: 100MB}
  - {name: two, model: resnet, gpus: 4, iterations: 20, start: 100ms}
schedulers: [ecmp, crux]
measure: {iterations: 2, warmup: 0, time_limit: 2s}
checks: [crux.gpu_utilization > 0]
"""
SCENARIOS: Final = (FULL, MANAGED, THREE_LAYERS, DOUBLE_SIDED, SMALL)
SIMAI_TOPOLOGY: Final = """\
16 2 4 4 20 H100
8 9 10 11 12 13 14 15
0 8 2880Gbps 0.000025ms 0
0 12 200Gbps 0.0005ms 0
1 8 2880Gbps 0.000025ms 0
1 12 200Gbps 0.0005ms 0
2 9 2880Gbps 0.000025ms 0
2 12 200Gbps 0.0005ms 0
3 9 2880Gbps 0.000025ms 0
3 12 200Gbps 0.0005ms 0
4 10 2880Gbps 0.000025ms 0
4 13 200Gbps 0.0005ms 0
5 10 2880Gbps 0.000025ms 0
5 13 200Gbps 0.0005ms 0
6 11 2880Gbps 0.000025ms 0
6 13 200Gbps 0.0005ms 0
7 11 2880Gbps 0.000025ms 0
7 13 200Gbps 0.0005ms 0
12 14 400Gbps 0.0005ms 0
12 15 400Gbps 0.0005ms 0
13 14 400Gbps 0.0005ms 0
13 15 400Gbps 0.0005ms 0
"""
NODE_LINK: Final = """\
{"directed": false, "multigraph": true, "graph": {},
 "nodes": [{"id": "n0", "kind": "host", "gpus": 2},
           {"id": "n1", "kind": "host", "gpus": 2},
           {"id": "n2", "kind": "host", "gpus": 2},
           {"id": "n3", "kind": "host", "gpus": 2},
           {"id": "leaf0", "kind": "switch"},
           {"id": "leaf1", "kind": "switch"},
           {"id": "spine0", "kind": "switch"},
           {"id": "spine1", "kind": "switch"}],
 "edges": [{"source": "n0", "target": "leaf0", "rate": "100Gbps"},
           {"source": "n1", "target": "leaf0", "rate": "100Gbps"},
           {"source": "n2", "target": "leaf1", "rate": "100Gbps"},
           {"source": "n3", "target": "leaf1", "rate": "100Gbps"},
           {"source": "leaf0", "target": "spine0", "rate": "100Gbps"},
           {"source": "leaf0", "target": "spine1", "rate": "100Gbps"},
           {"source": "leaf1", "target": "spine0", "rate": "100Gbps"},
           {"source": "leaf1", "target": "spine1", "rate": "100Gbps"}]}
"""
SWEEP: Final = """\
scenario: SCENARIO
engine: flow
schedulers: [ecmp, {name: crux, fairness: 0.5}]
seeds: [1, 2]
set:
  fabric.port_rate: [100Gbps, 200Gbps]
  jobs.one.gpus: [2, 4]
  measure: [{iterations: 2}, {iterations: 3, warmup: 1}]
"""
OVERRIDES: Final = (
    "seed=2",
    "measure.iterations=5",
    "jobs.0.gpus=2",
    "jobs.one.compute=2s",
    "fabric.port_rate=200Gbps",
    "schedulers=[ecmp, crux]",
    "fabric={kind: clos, hosts: 2}",
    "checks=[crux.gpu_utilization >= 0.5]",
    "measure.limit=3s",
)
CHECKS: Final = (
    "crux.gpu_utilization - ecmp.gpu_utilization >= 5 points",
    "one.jct_s * 2 < 1.75s + 200ms / (1 + 3)",
    "fidelity.verdict == ok",
    'two.jct_source != "measured"',
    "-one.iteration_s.mean <= comparison.crux.gpu_utilization_points",
    "comparison.crux.jct_change.one < 10 %",
)

_PHILLY_JOB: Final = """\
 {"status": "Pass", "vc": "v", "jobid": "a%d", "user": "u", "submitted_time": "2017-10-07 01:11:39", "attempts": [
  {"start_time": "2017-10-07 01:12:09", "end_time": "2017-10-07 01:13:09", "detail": [{"ip": "m4", "gpus": ["g0"]}]},
  {"start_time": "2017-10-07 01:14:00", "end_time": "2017-10-07 01:15:00", "detail": []}]}"""
TRACES: Final[dict[str, dict[str, str]]] = {
    "philly": {"cluster_job_log": "[\n" + ",\n".join(_PHILLY_JOB % number for number in range(3)) + "\n]\n"},
    "philly-csv": {
        "p.csv": "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,66.0,1,66.0,11cb48\n"
        "2017-10-09 07:00:55,5.0,8,40.0,6214e9\n"
    },
    "itp": {"c.csv": "job_id,submission_time,duration,num_gpu\na,0,10,1\nb,5,20,8\n"},
    "helios": {
        "cluster_log.csv": "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,"
        "queue\n1,u,v,8,4,1,COMPLETED,2020-04-01 00:00:00,2020-04-01 00:01:00,2020-04-01 01:01:00,3600,60\n"
        "2,u,v,1,4,1,FAILED,2020-04-01 00:10:00,2020-04-01 00:10:00,2020-04-01 00:11:00,60,0\n"
    },
    "acme": {
        "trace_seren.csv": "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,"
        "queue,gpu_time\n1,u,1,8,4,Pretrain,COMPLETED,2023-04-01 00:00:00+08:00,2023-04-01 00:01:00+08:00,"
        "2023-04-01 01:01:00+08:00,3600,60,28800\n"
    },
    "alibaba-v2020": {
        "pai_task_table.csv": "j1,worker,2.0,Terminated,100.0,200.0,600.0,30.0,50.0,V100\n"
        "j2,ps,1,Failed,50,80,1,1,100,\n",
        "pai_job_table.csv": "j1,i1,u1,Terminated,90.0,200.0\nj2,i2,u2,Failed,40,80\n",
        "pai_group_tag_table.csv": "i1,u1,,g,bert\n",
    },
    "alibaba-v2023": {
        "pods.csv": "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,"
        "scheduled_time\np1,1000,10,1,500,,LS,Succeeded,10,100,20\np2,1000,10,8,1000,,LS,Running,10,100,20\n"
    },
    "lingjun": {
        "job.csv": "job_name,status,gmt_job_submitted,gmt_job_running,gmt_job_finished,gmt_job_stopped,model,user_id,"
        "workspace_id,job_restart_times\n"
        "j1,Succeeded,2023-07-15 00:50:00,2023-07-15 00:51:00,2023-07-15 01:50:00,,gpt,u,w,0\n",
        "worker.csv": 'job_name,worker_name,host_ip,RES\nj1,w1,ip1,"{""nvidia.com/gpu"": 8}"\n'
        'j1,w2,ip2,"{""nvidia.com/gpu"": 8}"\n',
        "topo.csv": "ip,DSW,PSW,ASW\nip1,D1,P1,A1\nip2,D1,P1,A2\n",
    },
    "testbed": {
        "t.csv": "# name: t\n# synthetic: yes\n# skipped 3: no GPUs\n# note: none\n"
        "name,submit_s,duration_s,gpus,model,user,virtual_cluster,fate,hosts,attempts\n"
        "a,0.0,10.0,8,bert,u,v,pass,h1;h2,1\nb,5.0,1.0,1,,,,fail,,2\n"
    },
}
"""Format -> name of a file -> its text; a format of several files is a folder."""
