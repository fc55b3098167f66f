"""What DCQCN is to do where N flows share a link for long: its fixed point, and how fast it gets there.

From Zhu, Ghobadi, Misra and Padhye, "ECN or Delay: Lessons Learnt from Analysis of DCQCN and TIMELY", CoNEXT 2016,
whose text is in github.com/jitupadhye-zz/rdma, folder ``conext2016``. Rates are packets per second here, as there.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, expm1, inf, log, log1p, sqrt
from random import Random
from typing import Final

GAIN: Final = 1 / 256
NOTICE_S: Final = 50e-6
"""Tau: seconds between two notices to a flow, at least."""
ALPHA_S: Final = 55e-6
"""Tau': seconds without a notice after which alpha decays."""
TIMER_S: Final = 55e-6
STAGES: Final = 5
_EXPONENT_MOST: Final = 600.0
"""``exp`` of more than this is infinite, for what is computed here."""
_SLOPE: Final = 1.3
"""The marks of the fixed point grow about with this power of the number of flows; so few steps find them."""
_STEPS: Final = 6


@dataclass(frozen=True)
class Setting:
    """``flows`` at a link of ``rate`` bit/s with packets of ``packet`` bytes.

    ``additive`` bit/s per increase; bytes of the byte counter; the share of marks at the ``maximum`` queue.
    """

    flows: int
    rate: float = 40e9
    packet: int = 1024
    additive: float = 40e6
    byte_counter: float = 10e6
    minimum: float = 5e3
    maximum: float = 200e3
    probability: float = 0.01

    @property
    def per_s(self) -> float:
        """Packets per second of each flow."""
        return self.rate / 8 / self.packet / self.flows

    @property
    def step(self) -> float:
        """The additive increase in packets per second."""
        return self.additive / 8 / self.packet

    @property
    def counter(self) -> float:
        """Packets that the byte counter counts to."""
        return self.byte_counter / self.packet

    def queue(self, marks: float) -> float:
        """Bytes of the queue where ``marks`` of the packets are marked (equation 9); infinite above the ramp."""
        if marks > self.probability:
            return inf
        return self.minimum + marks / self.probability * (self.maximum - self.minimum)


def approximate_marks(setting: Setting) -> float:
    """Equation 14: the first term of the Taylor series of equation 11 around no marks."""
    both = 1 / setting.counter + 1 / (TIMER_S * setting.per_s)
    return float((setting.step / ALPHA_S / setting.per_s**2 * both**2) ** (1 / 3))


def fluid_marks(setting: Setting) -> float:
    """Equation 11, solved by bisection: its left side grows with the marks (theorem 1)."""
    low, high = 1e-12, 0.5
    while high / low > 1 + 1e-9:
        middle = sqrt(low * high)
        if _surplus(setting, middle) > 0:
            high = middle
        else:
            low = middle
    return low


def _surplus(setting: Setting, marks: float) -> float:
    """Left side less right side of equation 11, with a to e of equation 12."""
    none, per_s = log1p(-marks), setting.per_s
    a, alpha = -expm1(NOTICE_S * per_s * none), -expm1(ALPHA_S * per_s * none)
    b, c = _increases(marks, setting.counter)
    d, e = _increases(marks, TIMER_S * per_s)
    return a**2 * alpha / ((b + d) * (c + e)) - NOTICE_S**2 * setting.step * per_s


def _increases(marks: float, packets: float) -> tuple[float, float]:
    """Increases per packet, all and additive ones, where one comes after so many ``packets`` without a mark."""
    exponent = -packets * log1p(-marks)
    every = marks / expm1(exponent) if exponent < _EXPONENT_MOST else 0.0
    return every, every * exp(-STAGES * exponent)


def algorithm_marks(setting: Setting, delay_s: float = 4e-6, cycles: int = 20_000) -> float:
    """The share of marks at which one flow that runs the algorithm of SIGCOMM 2015 sends its share of the link.

    No queue, no other flow, and none of the fluid model's means of products: each packet is marked with the same
    probability, and one notice per ``NOTICE_S`` takes ``delay_s`` to come. Found by simulation of ``cycles`` notices.
    """
    marks = approximate_marks(setting)
    for _ in range(_STEPS):
        marks *= (Flow(setting, marks).mean_rate(delay_s, cycles) / setting.per_s) ** _SLOPE
    return marks


class Flow:
    """One flow; rates in packets per second, times in seconds since the last notice."""

    def __init__(self, setting: Setting, marks: float) -> None:
        self._setting, self._marks = setting, marks
        self._rate = self._target = setting.per_s
        self._alpha, self._line = marks * ALPHA_S * setting.per_s, setting.per_s * setting.flows
        self._random = Random(1)
        self._now = self._sent = 0.0
        self._reset()

    def mean_rate(self, delay_s: float, cycles: int) -> float:
        """Packets per second over ``cycles`` notices, a tenth of them before it counts."""
        sent = seconds = 0.0
        for number in range(cycles + cycles // 10):
            self._send(until_s=NOTICE_S - delay_s, packets=inf)
            self._send(until_s=inf, packets=1 + int(log(1 - self._random.random()) / log1p(-self._marks)))
            self._send(until_s=self._now + delay_s, packets=inf)
            if number >= cycles // 10:
                sent, seconds = sent + self._sent, seconds + self._now
            self._notice()
        return sent / seconds

    def _notice(self) -> None:
        self._target, self._rate = self._rate, self._rate * (1 - self._alpha / 2)
        self._alpha += GAIN * (1 - self._alpha)
        self._reset()

    def _reset(self) -> None:
        self._now = self._sent = self._counted = 0.0
        self._alpha_s, self._timer_s = ALPHA_S, TIMER_S
        self._by_time = self._by_bytes = 0

    def _send(self, until_s: float, packets: float) -> None:
        """Send until a time or for so many packets, whichever comes first."""
        while True:
            counter = (self._setting.counter - self._counted) / self._rate
            step = min(self._alpha_s - self._now, self._timer_s - self._now, counter)
            left = min(until_s - self._now, packets / self._rate)
            self._move(min(step, left))
            packets -= min(step, left) * self._rate
            if left <= step:
                return
            self._happen(counter <= step)

    def _move(self, seconds: float) -> None:
        self._now += seconds
        self._sent += seconds * self._rate
        self._counted += seconds * self._rate

    def _happen(self, counted: bool) -> None:
        """What is due now of both timers and the byte counter."""
        if self._alpha_s <= self._now:
            self._alpha *= 1 - GAIN
            self._alpha_s += ALPHA_S
        if self._timer_s <= self._now:
            self._by_time += 1
            self._timer_s += TIMER_S
            self._increase()
        if counted:
            self._counted = 0.0
            self._by_bytes += 1
            self._increase()

    def _increase(self) -> None:
        fewest, most = sorted((self._by_time, self._by_bytes))
        if fewest >= STAGES:
            self._target += 10 * self._setting.step * (fewest - STAGES + 1)
        elif most >= STAGES:
            self._target += self._setting.step
        self._target = min(self._target, self._line)
        self._rate = (self._rate + self._target) / 2


def convergence_s(setting: Setting) -> float:
    """Seconds until two rates that differ by the whole link differ by a tenth of a share, at most.

    Theorem 2 and appendix B: rates are cut together every ``ALPHA_S * gap`` seconds, by alpha / 2, which shrinks their
    difference by as much; alpha is never below its fixed point, and the queue fills to the maximum at most.
    """
    unit = setting.step * ALPHA_S  # packets that a rate of one more step sends in a unit of time
    late = (sqrt(1 + 8 * setting.maximum / setting.packet / (setting.flows * unit)) - 1) / 2
    alpha, gap = 1.0, inf
    for _ in range(10_000):
        gap = 2 + (late / 2 + setting.per_s / (2 * setting.step)) * alpha
        alpha = (1 - GAIN) ** gap * ((1 - GAIN) * alpha + GAIN)
    return ALPHA_S * gap * log(0.1 / setting.flows) / log(1 - alpha / 2)
