"""The bars of figures 19 to 22 of Crux, and the scenario of each group of bars.

Utilisations are read off the vector drawing (+- 0.001), changes of JCT are the printed labels; where a bar of JCT
differs from its label, the bar. They are printed beside our results and decide nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from testbed.errors import BadInputError
from testbed.reproduce.crux.inputs.bars_without_crux import WITHOUT_CRUX


@dataclass(frozen=True)
class Bar:
    """One group of bars: GPU utilisation under ECMP, under Crux and alone; relative change of JCT by kind of job."""

    scenario: str
    label: str
    crux: float
    ideal: float
    jct: Mapping[str, float]

    @property
    def without(self) -> float:
        """GPU utilisation under ECMP."""
        return WITHOUT_CRUX[self.scenario]

    @property
    def paper(self) -> dict[str, float]:
        """The paper's numbers by the keys of a row."""
        gain = {"gain_points": 100 * (self.crux - self.without)}
        changes = {f"jct_{kind}": change for kind, change in self.jct.items()}
        return {"without": self.without, "crux": self.crux, "ideal": self.ideal, **gain, **changes}


FIGURES: Final[Mapping[str, tuple[Bar, ...]]] = MappingProxyType(
    {
        "crux-fig19": (
            Bar("crux-fig19-2", "GPT-32 + 2 BERT-8", 0.842, 0.85, {"gpt": -0.11, "bert": 0.03}),
            Bar("crux-fig19-3", "GPT-32 + 3 BERT-8", 0.788, 0.81, {"gpt": -0.178, "bert": 0.00}),
            Bar("crux-fig19-4", "GPT-32 + 4 BERT-8", 0.736, 0.77, {"gpt": -0.25, "bert": 0.01}),
        ),
        "crux-fig20": (
            Bar(
                "crux-fig20",
                "GPT-48 + 2 BERT-16 + 2 ResNet-8",
                0.785,
                0.82,
                {"gpt": -0.189, "bert": -0.15, "resnet": 0.02},
            ),
        ),
        "crux-fig21": (
            Bar("crux-fig21-1", "BERT-16 + 1 ResNet-4", 0.816, 0.83, {"bert": -0.15, "resnet": 0.02}),
            Bar("crux-fig21-2", "BERT-16 + 2 ResNet-4", 0.793, 0.82, {"bert": -0.19, "resnet": 0.02}),
            Bar("crux-fig21-3", "BERT-16 + 3 ResNet-4", 0.783, 0.82, {"bert": -0.33, "resnet": 0.038}),
        ),
        "crux-fig22": (
            Bar("crux-fig22-8", "ResNet-8 + BERT-8", 0.749, 0.78, {"resnet": 0.01, "bert": -0.07}),
            Bar("crux-fig22-16", "ResNet-8 + BERT-16", 0.715, 0.75, {"resnet": 0.01, "bert": -0.148}),
            Bar("crux-fig22-24", "ResNet-8 + BERT-24", 0.687, 0.72, {"resnet": 0.02, "bert": -0.28}),
        ),
    }
)


def chosen(figure: str, only: tuple[str, ...]) -> tuple[Bar, ...]:
    """Return the bars of ``figure``, or those whose scenario is in ``only``; ``BadInputError`` for an unknown one."""
    bars = FIGURES[figure]
    known = [bar.scenario for bar in bars]
    for name in only:
        if name not in known:
            raise BadInputError(f"{figure} has no row '{name}', expected one of: {', '.join(known)}")
    return tuple(bar for bar in bars if not only or bar.scenario in only)
