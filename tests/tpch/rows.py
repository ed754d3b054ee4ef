"""Rows of the eight TPC-H tables, drawn so that a few hundred orders give every query something to show.

Values follow the specification's shapes; their distribution does not: nations, brands, dates and quantities that the
queries ask for are frequent. `benchmarks.tpch` has the specification's distribution.
"""

from datetime import date, timedelta
from random import Random

REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
NATIONS = (
    ("ALGERIA", 0), ("ARGENTINA", 1), ("BRAZIL", 1), ("CANADA", 1), ("EGYPT", 4), ("ETHIOPIA", 0), ("FRANCE", 3),
    ("GERMANY", 3), ("INDIA", 2), ("INDONESIA", 2), ("IRAN", 4), ("IRAQ", 4), ("JAPAN", 2), ("JORDAN", 4),
    ("KENYA", 0), ("MOROCCO", 0), ("MOZAMBIQUE", 0), ("PERU", 1), ("CHINA", 2), ("ROMANIA", 3), ("SAUDI ARABIA", 4),
    ("VIETNAM", 2), ("RUSSIA", 3), ("UNITED KINGDOM", 3), ("UNITED STATES", 1),
)  # fmt: skip
ASKED_NATIONS = (2, 3, 3, 6, 7, 8, 12, 20, 20)
COLOURS = ("forest", "green", "almond", "azure")
TYPES = (
    "ECONOMY ANODIZED STEEL", "PROMO BURNISHED BRASS", "STANDARD PLATED BRASS", "MEDIUM POLISHED COPPER",
    "PROMO BRUSHED TIN", "LARGE BRUSHED NICKEL",
)  # fmt: skip
SIZES = (3, 3, 9, 14, 15, 15, 45)
CONTAINERS = {"Brand#12": "SM PACK", "Brand#23": "MED BOX", "Brand#34": "LG CASE", "Brand#45": "JUMBO JAR"}
SEGMENTS = ("BUILDING", "BUILDING", "AUTOMOBILE", "MACHINERY")
PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "5-LOW")
MODES = ("AIR", "AIR", "MAIL", "SHIP", "TRUCK")
INSTRUCTIONS = ("DELIVER IN PERSON", "DELIVER IN PERSON", "TAKE BACK RETURN", "NONE")
WORDS = ("carefully", "final", "packages", "sleep", "above", "the", "ironic", "deposits", "special", "requests")

Row = tuple[object, ...]


def region(key: int) -> Row:
    """Return a region of the specification, or one that it does not know."""
    return key, REGIONS[key] if key < len(REGIONS) else "ANTARCTICA", "comment"


def nation(rng: Random, key: int) -> Row:
    """Return a nation of the specification, or one that it does not know."""
    known = NATIONS[key] if key < len(NATIONS) else ("ATLANTIS", rng.randrange(len(REGIONS)))
    return key, *known, _comment(rng)


def supplier(rng: Random, key: int) -> Row:
    """Draw a supplier; every sixth was complained about."""
    home = _home(rng)
    remark = "Customer of late Complaints" if rng.random() < 1 / 6 else _comment(rng)
    return key, f"Supplier#{key:09}", _comment(rng), home, _phone(rng, home), _balance(rng), remark


def part(rng: Random, key: int) -> Row:
    """Draw a part whose container mostly goes with its brand."""
    brand = rng.choice(list(CONTAINERS))
    container = CONTAINERS[brand] if rng.random() < 0.8 else rng.choice(list(CONTAINERS.values()))
    name = " ".join(rng.sample(COLOURS, 3))
    price = f"{900 + key}.{rng.randrange(100):02}"
    return key, name, "Manufacturer#1", brand, rng.choice(TYPES), rng.choice(SIZES), container, price, "comment"


def partsupp(rng: Random, part_key: int, supplier_key: int) -> Row:
    """Draw what a supplier has of a part: often so little that sums about it matter."""
    available = rng.randint(1, 100) if rng.random() < 0.5 else rng.randint(100, 9999)
    return part_key, supplier_key, available, f"{rng.randint(1, 40)}.00", _comment(rng)


def customer(rng: Random, key: int) -> Row:
    """Draw a customer."""
    home = _home(rng)
    phone, segment = _phone(rng, home), rng.choice(SEGMENTS)
    return key, f"Customer#{key:09}", _comment(rng), home, phone, _balance(rng), segment, _comment(rng)


def order(rng: Random, key: int, customer_key: int) -> Row:
    """Draw an order of the middle years, whose total is independent of its line items."""
    placed = date(1993, 6, 1) + timedelta(rng.randrange(1125))
    total = f"{rng.randint(1_000, 400_000)}.{rng.randrange(100):02}"
    status, priority = rng.choice("FFOP"), rng.choice(PRIORITIES)
    return key, customer_key, status, total, placed, priority, f"Clerk#{rng.randrange(9):09}", 0, _comment(rng)


def lineitem(rng: Random, key: tuple[int, int], stock: tuple[int, int], placed: date) -> Row:
    """Draw a line of an order: `key` is order and line number, `stock` part and supplier."""
    quantity = rng.randint(1, 25) if rng.random() < 0.35 else rng.randint(38, 50)
    price = f"{quantity * (900 + stock[0])}.{rng.randrange(100):02}"
    shipped, promised = placed + timedelta(rng.randint(1, 121)), placed + timedelta(rng.randint(30, 90))
    received = shipped + timedelta(rng.randint(1, 30))
    flag, status = rng.choice("RAN"), "F" if shipped < date(1995, 6, 17) else "O"
    rates = f"0.{rng.randint(0, 10):02}", f"0.{rng.randint(0, 8):02}"
    dates = shipped, promised, received
    manner = rng.choice(INSTRUCTIONS), rng.choice(MODES)
    return key[0], *stock, key[1], quantity, price, *rates, flag, status, *dates, *manner, "comment"


def _home(rng: Random) -> int:
    return rng.choice(ASKED_NATIONS) if rng.random() < 0.85 else rng.randrange(len(NATIONS))


def _phone(rng: Random, home: int) -> str:
    return f"{home + 10}-{rng.randrange(1000):03}-{rng.randrange(1000):03}-{rng.randrange(10_000):04}"


def _balance(rng: Random) -> str:
    return f"{rng.randint(-999, 9999)}.{rng.randrange(100):02}"


def _comment(rng: Random) -> str:
    return " ".join(rng.choices(WORDS, k=rng.randint(3, 4)))
