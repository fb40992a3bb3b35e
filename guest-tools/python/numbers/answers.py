#!/usr/bin/env python3
"""Writes `answers.txt`: what CPython computes with big integers.

A line is an operation, its arguments and the answer. Integers are hexadecimal; floats are
the hexadecimal digits of their 64 bits, or `overflow`.
"""

import math
import pathlib
import random
import struct

random.seed(41)
MODULUS = 2**61 - 1
lines = []


def bits(value):
    return f"{struct.unpack('>Q', struct.pack('>d', value))[0]:016x}"


def note(operation, *words):
    lines.append(
        " ".join([operation, *(f"{word:x}" if isinstance(word, int) else word for word in words)])
    )


def attempt(function, *arguments):
    try:
        return bits(function(*arguments))
    except OverflowError:
        return "overflow"


def integer(most):
    """An integer of up to `most` bits, often close to a power of two."""
    size = random.randint(0, most)
    value = random.choice(
        [
            lambda: random.getrandbits(size) if size else 0,
            lambda: (1 << size) + random.randint(-2, 2),
            lambda: (random.getrandbits(54) << size) + random.randint(-1, 1),
        ]
    )()
    return random.choice([value, -value])


edges = [0, 1, -1, 2**53, 2**53 + 1, 2**54 + 2, 2**54 + 6, 2**63, -(2**63), 2**64, MODULUS, -MODULUS]
# Around the largest float, and halfway to the next one.
edges += [2**1024 - 2**971, 2**1024 - 2**970, 2**1024 - 2**970 - 1, 2**1024, -(2**1024)]

for value in edges + [integer(1100) for _ in range(40)] + [integer(200) for _ in range(80)]:
    note("float", value, attempt(float, value))
    note("hash", value, value % MODULUS if value >= 0 else -(-value % MODULUS))
    # The file stays small.
    if value.bit_length() < 200:
        for base in (2, 8, 10, 16):
            text = format(value, {2: "b", 8: "o", 10: "d", 16: "x"}[base])
            note("text", value, base, text)
        shift = random.choice([1, 63, 64, random.randint(0, 200)])
        note("left", value, shift, value << shift)
        note("right", value, shift, value >> shift)
    if value >= 0:
        note("isqrt", value, math.isqrt(value))

pairs = [(a, b) for a in edges for b in edges if b]
pairs += [(integer(400), integer(400)) for _ in range(300)]
pairs += [(integer(2400), integer(1300)) for _ in range(10)]
# Quotients that are subnormal, or exactly between two floats.
for _ in range(60):
    mantissa = random.getrandbits(random.randint(1, 55)) or 1
    pairs.append((random.choice([mantissa, -mantissa]), 1 << random.randint(1000, 1140)))
    factor = random.getrandbits(80) | 1
    pairs.append((((mantissa << 1) | 1) * factor, factor << random.randint(0, 1130)))
for near in (0, 2**52, 2**54, 2**55):
    pairs += [(near + low, 2**1076) for low in range(1, 13)]
for top, bottom in pairs:
    if bottom:
        note("divide", top, bottom, attempt(lambda: top / bottom))

for _ in range(100):
    top, bottom = integer(200), integer(150)
    if bottom:
        note("floor", top, bottom, top // bottom)
        note("modulo", top, bottom, top % bottom)
    for name, answer in [("and", top & bottom), ("or", top | bottom), ("xor", top ^ bottom)]:
        note(name, top, bottom, answer)

for _ in range(60):
    base, power = integer(40), random.randint(0, 20)
    note("power", base, power, base**power)
    modulus = abs(integer(80)) + 1
    note("modpow", base, power << 10, modulus, pow(base, power << 10, modulus))

floats = [0.0, -0.0, 1.0, 0.1, -2.5, 5e-324, 2.2250738585072014e-308, 2.225073858507201e-308]
floats += [1.7976931348623157e308, 2.0**52, 2.0**53, 2.0**60, 1e23]
floats += [random.uniform(-1, 1) * 2.0 ** random.randint(-1070, 1000) for _ in range(60)]
for value in floats:
    note("ratio", bits(value), *value.as_integer_ratio())
    note("whole", bits(value), int(value))

pathlib.Path(__file__).with_name("answers.txt").write_text("\n".join(lines) + "\n")
