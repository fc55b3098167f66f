"""Traces of the PyTorch profiler: compute is what other kernels take, overlap what of NCCL's lies beside them."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

from workloads.imported import kineto
from workloads.imported.errors import WorkloadFileError
from workloads.imported.workload import Collective, Stretch, totals


def kernel(start: float, duration: float, name: str = "gemm", **told: object) -> dict[str, Any]:
    return {"ph": "X", "cat": "kernel", "name": name, "ts": start, "dur": duration, "args": told}


def nccl(start: float, duration: float, what: str, elements: int, group: int = 4) -> dict[str, Any]:
    told = {
        "Collective name": what,
        "In msg nelems": elements,
        "Out msg nelems": 4 * elements if what == "_allgather_base" else elements,
        "dtype": "Float",
        "Group size": group,
    }
    return kernel(start, duration, f"ncclDevKernel_{what}", **told)


def document(*events: dict[str, Any], world: int | None = 4) -> dict[str, Any]:
    told = {} if world is None else {"distributedInfo": {"rank": 0, "world_size": world}}
    return {**told, "traceEvents": list(events)}


def write(path: Path, data: object) -> Path:
    text = json.dumps(data)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


STEP = document(
    kernel(0, 100),
    kernel(50, 100),
    nccl(150, 100, "allreduce", 1000),
    kernel(200, 20),
    nccl(300, 10, "_allgather_base", 8),
)


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_compute_is_the_union_of_other_kernels_and_overlap_what_lies_beside(tmp_path: Path, name: str) -> None:
    found = kineto.read(write(tmp_path / name, STEP))
    first, second = found.stretches
    assert first.compute_s == pytest.approx(170e-6) and first.beside_s == pytest.approx(20e-6)
    assert first.collective == Collective("allreduce", "all", 4000.0)
    assert second.collective == Collective("all-gather", "all", 4 * 4 * 8.0)
    assert totals(found) == {("allreduce", "all"): (1, 4000.0), ("all-gather", "all"): (1, 128.0)}


@pytest.mark.parametrize(
    ("name", "library"),
    [
        ("void deep_ep::internode::dispatch<false, 8, false>(int4*, float*)", "DeepEP"),
        ("void deep_ep::internode_ll::combine<true>(void*)", "DeepEP"),
        ("nvshmemi_transfer_rma_kernel(void*)", "NVSHMEM"),
        ("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "NCCL"),
        ("ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)", "NCCL"),
        ("mscclKernel_Sum_half_Simple_false(ncclDevComm*)", "MSCCL"),
        ("void mscclpp::collective::allreducePacket<half>(half*)", "MSCCL++"),
        ("void uccl::internode_ll::dispatch<true>(void*)", "UCCL"),
        ("void vllm::cross_device_reduce_2stage<__nv_bfloat16, 8>(vllm::RankData*)", "custom allreduce"),
        ("void tensorrt_llm::kernels::oneShotAllReduceKernel<half, 8>(AllReduceParams)", "custom allreduce"),
        ("void userbuffers_fp16_sum_inplace_gpu_rr_rs_oop<8>(int)", "userbuffers"),
        ("void (anonymous namespace)::one_shot_all_reduce_kernel<float>(float**)", "symmetric memory"),
        ("my_ring_all_gather_v2(float*)", "unknown library"),
    ],
)
def test_kernels_of_other_libraries_are_communication_of_unknown_size(tmp_path: Path, name: str, library: str) -> None:
    trace = document(kernel(0, 100), kernel(100, 300, name), nccl(400, 100, "allreduce", 1000))
    found = kineto.read(write(tmp_path / "trace.json", trace))
    assert found.compute_s == pytest.approx(100e-6)
    (line,) = found.left_out
    assert line.startswith("1 kernels ") and line.endswith("no collective of known size")
    assert f"({library}, 60 % of the kernels' time)" in line
    assert found.coverage.share_left_out == pytest.approx(0.75)


@pytest.mark.parametrize(
    "name",
    [
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, all_reduce>>(float)",
        "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float>(all_gather)",
        "void deep_ep::layout::get_dispatch_layout<256>(long const*)",
        "sm90_xmma_gemm_bf16",
        "triton_red_fused_reduce_scatterplot",
    ],
)
def test_kernels_that_only_have_such_words_compute(tmp_path: Path, name: str) -> None:
    found = kineto.read(write(tmp_path / "trace.json", document(kernel(0, 100), kernel(100, 300, name))))
    assert (found.compute_s, found.left_out) == (pytest.approx(400e-6), ())


def test_a_kernel_that_a_process_group_launched_communicates_whatever_it_is_called(tmp_path: Path) -> None:
    of_group = kernel(100, 300, "strange", **{"Process Group Name": "dp"})
    found = kineto.read(
        write(tmp_path / "trace.json", document(kernel(0, 100), of_group, nccl(400, 9, "allreduce", 9)))
    )
    assert found.compute_s == pytest.approx(100e-6)
    assert found.left_out[0].startswith("1 kernels strange (unknown library, ")


def test_a_kernel_among_those_that_communicate_counts_as_compute_and_is_named(tmp_path: Path) -> None:
    collectives = [nccl(100 * n, 50, "allreduce", 10) for n in range(2)]
    for each in collectives:
        each["args"]["stream"] = 20
    trace = document(*collectives, kernel(300, 100, "pack", stream=20), kernel(400, 100, "gemm", stream=7))
    found = kineto.read(write(tmp_path / "trace.json", trace))
    assert found.compute_s == pytest.approx(200e-6)
    named = "1 kernels pack (33.3 % of the kernels' time) count as compute, on a stream of communication"
    assert found.notes[1:] == (named,)


def test_sends_are_messages_between_stages_and_what_is_received_is_theirs(tmp_path: Path) -> None:
    def peer(start: float, what: str, **told: object) -> dict[str, Any]:
        event = nccl(start, 10, what, 100)
        event["args"] |= told
        return event

    trace = document(peer(0, "send", **{"Dst Rank": 1}), peer(20, "recv", **{"Src Rank": 1}))
    trace["traceEvents"].append(peer(40, "send", **{"Dst Rank": 0}))
    trace["distributedInfo"]["rank"] = 1
    found = kineto.read(write(tmp_path / "trace.json", trace))
    there, back = found.collectives
    assert there == Collective("point-to-point", "all", 400.0)
    assert back == Collective("point-to-point", "all", 400.0, returning=True)
    assert found.left_out == ()


def test_copies_between_gpus_stay_inside_the_host(tmp_path: Path) -> None:
    copy = {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy PtoP (Device -> Device)", "ts": 5, "dur": 9}
    copy["args"] = {"bytes": 2_000_000}
    found = kineto.read(write(tmp_path / "trace.json", document(kernel(0, 100), copy)))
    assert found.compute_s == pytest.approx(100e-6)
    assert found.notes[1] == "1 copies between GPUs (2MB) stay inside the host: they are neither compute nor messages"


def test_the_median_step_counts(tmp_path: Path) -> None:
    marks = [
        {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{n}", "ts": 1000.0 * n, "dur": 900}
        for n in range(3)
    ]
    kernels = [kernel(1000.0 * n, length) for n, length in enumerate((500, 10, 300))]
    marks[2]["ts"] = 2100.0  # the second step is the longest, the third the shortest
    kernels[2]["ts"] = 2100.0
    found = kineto.read(write(tmp_path / "trace.json", document(*marks, *kernels)))
    assert found.stretches == (Stretch(pytest.approx(500e-6)),)
    assert found.notes == ("3 kernels, 0 communicate; the median of 3 steps",)


@pytest.mark.parametrize(
    ("data", "gpus", "message"),
    [
        ([], None, ":1: no JSON object, expected a trace of the PyTorch profiler"),
        (document(kernel(0, 1), world=None), None, ": no world size, expected gpus, the number of GPUs of the job"),
        (document(kernel(0, 1)), 8, ": world size 4 for 8 GPUs, expected the same number"),
        (document(), None, ": no kernel, expected events of category kernel"),
        (
            document(nccl(0, 1, "allreduce", 5, group=2)),
            None,
            ": ncclDevKernel_allreduce is a collective of 2 of 4 ranks, expected group, the ranks that take part",
        ),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path: Path, data: object, gpus: int | None, message: str) -> None:
    file = write(tmp_path / "trace.json", data)
    with pytest.raises(WorkloadFileError) as refused:
        kineto.read(file, gpus)
    assert str(refused.value) == f"{file}{message}"


@pytest.mark.parametrize("seed", range(500))
def test_a_damaged_trace_is_read_or_refused_in_one_line(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    packed = seed % 2 == 0
    file = write(tmp_path / f"trace.json{'.gz' if packed else ''}", STEP)
    data = bytearray(file.read_bytes())
    for _ in range(draw.randint(1, 4)):
        data[draw.randrange(len(data))] = draw.randrange(256) if packed else draw.choice(b'0}]",:-e9n')
    file.write_bytes(bytes(data))
    try:
        kineto.read(file)
    except WorkloadFileError as error:
        assert str(error).startswith(str(file))
        assert "\n" not in str(error)


def test_a_trace_of_which_nothing_that_communicates_has_a_size_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "t.json", document(kernel(0, 100), kernel(100, 50, "ncclDevKernel_AllReduce")))
    with pytest.raises(
        WorkloadFileError, match=r"none of 1 kernels that communicate has a size .*expected Collective name"
    ):
        kineto.read(path)


def test_what_is_kept_and_what_is_left_out_are_all_that_communicates(tmp_path: Path) -> None:
    unknown = kernel(400, 30, "ncclDevKernel_Gather")
    found = kineto.read(write(tmp_path / "t.json", document(nccl(0, 70, "allreduce", 10), kernel(100, 5), unknown)))
    assert (found.coverage.kept, found.coverage.left_out) == (1, 1)
    assert found.coverage.share_left_out == pytest.approx(0.3)
    assert found.said_left_out[0].endswith("leaves out 30 % of its communication (30us of 100us, 1 operators)")


def test_a_file_that_is_no_utf_8_has_its_own_line(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(b'{"traceEvents": [\n{"name": "\xff"}\n]}')
    with pytest.raises(WorkloadFileError, match=r"t\.json:2: not UTF-8 text"):
        kineto.read(path)
