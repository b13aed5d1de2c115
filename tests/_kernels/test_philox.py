"""Philox4x32-10 against its published known answers, and the uniforms and normals made of it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tropel._kernels.compile import kernel
from tropel._kernels.philox import bell, normals, philox4x32, random_key, uniform, uniform_pair, uniforms

# From the file tests/kat_vectors of Random123, the authors' own library: counter, key, answer.
KNOWN_ANSWERS = [
    (
        (0x00000000, 0x00000000, 0x00000000, 0x00000000),
        (0x00000000, 0x00000000),
        (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8),
    ),
    (
        (0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF),
        (0xFFFFFFFF, 0xFFFFFFFF),
        (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
    ),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]

words = st.integers(0, 2**32 - 1)


def philox_in_plain_integers(counter: tuple[int, ...], key: tuple[int, ...]) -> tuple[int, ...]:
    """The ten rounds of the paper with Python's unbounded integers."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        first, second = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (
            (second >> 32) ^ c1 ^ k0,
            second & 0xFFFFFFFF,
            (first >> 32) ^ c3 ^ k1,
            first & 0xFFFFFFFF,
        )
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c0, c1, c2, c3


def compiled(counter: tuple[int, ...], key: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(word) for word in philox4x32(*(np.uint32(word) for word in (*counter, *key))))


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN_ANSWERS)
def test_the_published_known_answers_hold(
    counter: tuple[int, ...], key: tuple[int, ...], answer: tuple[int, ...]
) -> None:
    assert compiled(counter, key) == answer
    assert philox_in_plain_integers(counter, key) == answer


@given(st.tuples(words, words, words, words), st.tuples(words, words))
@settings(max_examples=200, deadline=None)
def test_any_counter_and_key_agree_with_plain_integers(counter: tuple[int, ...], key: tuple[int, ...]) -> None:
    assert compiled(counter, key) == philox_in_plain_integers(counter, key)


@given(
    key=st.integers(0, 2**64 - 1),
    agent=st.integers(0, 2**63 - 1),
    step=st.integers(0, 2**40 - 1),
    draw=st.integers(0, 2**24 - 1),
)
@settings(max_examples=200, deadline=None)
def test_the_counter_holds_id_step_and_draw_without_loss(key: int, agent: int, step: int, draw: int) -> None:
    counter = (agent & 0xFFFFFFFF, agent >> 32, step & 0xFFFFFFFF, ((step >> 32) << 24) | draw)
    a, b, c, d = philox_in_plain_integers(counter, (key & 0xFFFFFFFF, key >> 32))
    expected = (((a << 21) ^ (b >> 11)) / 2**53, ((c << 21) ^ (d >> 11)) / 2**53)
    assert uniform_pair(np.uint64(key), np.int64(agent), np.int64(step), np.int64(draw)) == expected
    assert uniform(np.uint64(key), np.int64(agent), np.int64(step), np.int64(draw)) == expected[0]


def test_uniforms_lie_between_zero_and_one_and_are_spread_evenly() -> None:
    count = 200_000
    values = uniforms(random_key(1, "spread"), np.arange(count))
    assert values.min() >= 0.0
    assert values.max() < 1.0
    histogram, _ = np.histogram(values, bins=100, range=(0.0, 1.0))
    expected = 2 * count / 100
    chi_square = float(((histogram - expected) ** 2 / expected).sum())
    assert chi_square < 99 + 5 * math.sqrt(2 * 99)
    assert abs(np.corrcoef(values[:, 0], values[:, 1])[0, 1]) < 5 / math.sqrt(count)


def test_the_largest_uniform_is_still_below_one() -> None:
    # All 53 bits set: the largest value the mapping from words to numbers can give.
    assert ((0xFFFFFFFF << 21) ^ (0xFFFFFFFF >> 11)) / 2**53 < 1.0


def test_normals_have_mean_zero_variance_one_and_thin_tails() -> None:
    count = 200_000
    values = normals(random_key(2, "tails"), np.arange(count)).ravel()
    assert np.isfinite(values).all()
    assert abs(values.mean()) < 5 / math.sqrt(values.size)
    assert abs(values.var() - 1.0) < 5 * math.sqrt(2 / values.size)
    assert abs((values > 1.959963985).mean() - 0.025) < 5 * math.sqrt(0.025 / values.size)
    assert np.abs(values).max() < 7.0


def test_the_order_and_company_of_ids_do_not_matter() -> None:
    key = random_key(3, "order")
    ids = np.arange(1000)
    shuffled = np.random.default_rng(0).permutation(ids)
    all_at_once = uniforms(key, ids, step=7, draw=2)
    np.testing.assert_array_equal(uniforms(key, shuffled, step=7, draw=2), all_at_once[shuffled])
    for agent in (0, 1, 999):
        np.testing.assert_array_equal(uniforms(key, np.array([agent]), step=7, draw=2)[0], all_at_once[agent])


def test_id_step_draw_seed_and_purpose_each_give_other_numbers() -> None:
    ids = np.arange(500)
    drawn = [
        uniforms(random_key(0, "a"), ids),
        uniforms(random_key(0, "b"), ids),
        uniforms(random_key(1, "a"), ids),
        uniforms(random_key(0, "a"), ids, step=1),
        uniforms(random_key(0, "a"), ids, step=2**32),
        uniforms(random_key(0, "a"), ids, draw=1),
    ]
    everything = np.concatenate([values.ravel() for values in drawn])
    assert len(np.unique(everything)) == everything.size


def test_keys_do_not_run_seed_and_purpose_together() -> None:
    assert random_key(1, "2x") != random_key(12, "x")
    assert random_key(-1, "x") != random_key(1, "x")
    assert random_key(5, "x") == random_key(5, "x")


@kernel
def bells(key, ids, out):
    for k in range(ids.size):
        out[k] = bell(key, ids[k], 3, 0)


def test_the_bell_has_the_moments_of_eight_uniforms() -> None:
    ids = np.arange(400_000)
    drawn = np.empty(len(ids))
    bells(random_key(1, "bell"), ids, drawn)
    assert abs(drawn.mean()) < 0.006
    assert drawn.var() == pytest.approx(1.0, abs=0.01)
    assert (drawn**4).mean() == pytest.approx(3.0 - 1.2 / 8, abs=0.04)
    assert np.abs(drawn).max() < 4.9
    assert abs(np.corrcoef(drawn[:-1], drawn[1:])[0, 1]) < 0.006
