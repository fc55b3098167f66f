"""Max-min fair speeds of the jobs of one level, found anew only for those to whom a change gets through; compiled.

Speeds are max-min fair if every job is at full speed, or uses a full link on which nobody of its level is faster. So
those for whom neither holds any more get new speeds while the others keep theirs, then those for whom it no longer
holds with these, until it holds for everybody: of many jobs that share links with each other an event changes few.
"""

from __future__ import annotations

from testbed.fluid.compiled import compiled_in_place
from testbed.fluid.maxmin import Flags, Floats, Integers
from testbed.fluid.shared_links import FULL, Users

Links = tuple[Integers, Integers, Floats]
"""Links that may slow a job, in rows by job: starts [jobs + 1], links, and the job's share of each at full speed."""
Room = tuple[Floats, Floats, Integers, Flags]
"""Room to compute in: [links], [links] (zeros before and after), [jobs], and [jobs] (False before and after)."""


@compiled_in_place
def share_fairly(
    who: Integers,
    first: int,
    end: int,
    sending: Flags,
    links: Links,
    users: Users,
    levels: Integers,
    speed: Floats,
    room: Room,
    changed: Integers,
) -> int:
    """Bring ``speed`` [jobs], 0 to 1, to what is fair among those of a level, when it may be so no more for some.

    Those are ``first`` to ``end`` in ``who``; they send. Write into ``changed`` who may have got another speed, and
    return how many these are. More urgent levels keep their ``speed``, which takes its part of links first.
    """
    member, size = room[3], 0
    for place in range(first, end):
        if not has_its_share(who[place], links, users, levels, speed):
            size = join(who[place], changed, size, member)
    before = 0
    while size > before:
        before = size
        rise(changed, size, links, users, levels, speed, room)
        size = join_others(changed, size, sending, links, users, levels, speed, member)
    for place in range(size):
        member[changed[place]] = False
    return size


@compiled_in_place
def has_its_share(job: int, links: Links, users: Users, levels: Integers, speed: Floats) -> bool:
    """Return whether ``job`` is at full speed or uses a full link on which nobody of its level is faster.

    It has not if a link of it is loaded by more than there is.
    """
    starts, numbers, _ = links
    rows, others, parts = users
    has = bool(speed[job] >= 1.0 - FULL)
    for at in range(starts[job], starts[job + 1]):
        link, left, most = numbers[at], 1.0, 0.0
        for place in range(rows[link], rows[link + 1]):
            other = others[place]
            if levels[other] <= levels[job]:
                left -= parts[place] * speed[other]
                if levels[other] == levels[job]:
                    most = max(most, speed[other])
        if left < -FULL:
            return False
        has = has or bool(left <= FULL and speed[job] >= most - FULL)
    return has


@compiled_in_place
def join(job: int, members: Integers, size: int, member: Flags) -> int:
    """Put ``job`` behind the first ``size`` of ``members``, if it is not among them; return how many these are then."""
    if member[job]:
        return size
    member[job] = True
    members[size] = job
    return size + 1


@compiled_in_place
def join_others(
    members: Integers,
    size: int,
    sending: Flags,
    links: Links,
    users: Users,
    levels: Integers,
    speed: Floats,
    member: Flags,
) -> int:
    """Add to ``members`` those on their links whose speed is no longer fair beside theirs; return how many they are.

    All are of one level. Those are who could be faster now, and who is faster than a member that has not its share.
    """
    starts, numbers, _ = links
    rows, others, _ = users
    now = size
    for one in range(now):
        job = members[one]
        has = has_its_share(job, links, users, levels, speed)
        for at in range(starts[job], starts[job + 1]):
            link = numbers[at]
            for place in range(rows[link], rows[link + 1]):
                other = others[place]
                if member[other] or levels[other] != levels[job] or not sending[other]:
                    continue
                if (not has and speed[other] > speed[job]) or not has_its_share(other, links, users, levels, speed):
                    size = join(other, members, size, member)
    return size


@compiled_in_place
def leave_free(
    members: Integers,
    size: int,
    links: Links,
    users: Users,
    levels: Integers,
    speed: Floats,
    member: Flags,
    free: Floats,
) -> None:
    """Write into ``free`` [links] what those who are no ``members``, of their or more urgent levels, leave of links."""
    starts, numbers, _ = links
    rows, others, parts = users
    for one in range(size):
        job = members[one]
        for at in range(starts[job], starts[job + 1]):
            link, left = numbers[at], 1.0
            for place in range(rows[link], rows[link + 1]):
                other = others[place]
                if not member[other] and levels[other] <= levels[job]:
                    left -= parts[place] * speed[other]
            free[link] = max(left, 0.0)


@compiled_in_place
def rise(members: Integers, size: int, links: Links, users: Users, levels: Integers, speed: Floats, room: Room) -> None:
    """Write into ``speed`` those of the first ``size`` of ``members``, max-min fair in what others leave to them."""
    free, wanted, growing, member = room
    starts, numbers, _ = links
    if size == 1:
        speed[members[0]] = fill(members[0], links, users, levels, speed)
        return
    leave_free(members, size, links, users, levels, speed, member, free)
    for one in range(size):
        growing[one] = members[one]
    left, reached = size, 0.0
    while left > 0:
        reached += rise_together(growing, left, links, free, wanted, 1.0 - reached)
        still = 0
        for one in range(left):
            job, stops = growing[one], reached >= 1.0 - FULL
            for at in range(starts[job], starts[job + 1]):
                stops = stops or free[numbers[at]] <= FULL
            if stops:
                speed[job] = reached
            else:
                growing[still] = job
                still += 1
        left = still


@compiled_in_place
def fill(job: int, links: Links, users: Users, levels: Integers, speed: Floats) -> float:
    """Return the speed, 1 at most, at which ``job`` fills a link beside the others of its and more urgent levels."""
    starts, numbers, shares = links
    rows, others, parts = users
    level, most = levels[job], 1.0
    for at in range(starts[job], starts[job + 1]):
        link, left = numbers[at], 1.0
        for place in range(rows[link], rows[link + 1]):
            other = others[place]
            if levels[other] <= level and other != job:
                left -= parts[place] * speed[other]
        if left < most * shares[at]:
            most = max(left, 0.0) / shares[at]
    return most


@compiled_in_place
def rise_together(growing: Integers, some: int, links: Links, free: Floats, wanted: Floats, most: float) -> float:
    """Return by how much, ``most`` at most, the speeds of the first jobs ``growing`` can rise until a link is full.

    ``free`` falls accordingly.
    """
    starts, numbers, shares = links
    by = most
    for one in range(some):
        for place in range(starts[growing[one]], starts[growing[one] + 1]):
            wanted[numbers[place]] += shares[place]
    for one in range(some):
        for place in range(starts[growing[one]], starts[growing[one] + 1]):
            link = numbers[place]
            if wanted[link] > 0.0:
                by = min(by, free[link] / wanted[link])
    by = max(by, 0.0)
    for one in range(some):
        for place in range(starts[growing[one]], starts[growing[one] + 1]):
            link = numbers[place]
            free[link] -= by * wanted[link]
            wanted[link] = 0.0
    return by
