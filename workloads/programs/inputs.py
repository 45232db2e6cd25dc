"""Writes what the programs of the suite read: the same bytes every time. `python3 inputs.py FOLDER`"""
import json
import pathlib
import random
import sys
from xml.sax.saxutils import escape


def orders(generator, count):
    for number in range(count):
        yield {
            "number": number,
            "customer": {"name": f"customer {generator.randrange(2000)}", "city": f"city {generator.randrange(300)}"},
            "tags": [f"tag-{generator.randrange(50)}" for _ in range(generator.randrange(4))],
            "lines": [
                {"article": f"article {generator.randrange(5000)}", "price": generator.randrange(1, 10000) / 100,
                 "count": generator.randrange(1, 9), "note": None if generator.randrange(3) else "gift & card"}
                for _ in range(generator.randrange(1, 6))
            ],
        }


def element(name, value, depth):
    space = "  " * depth
    if isinstance(value, dict):
        inner = "".join(element(key, part, depth + 1) for key, part in value.items())
        return f'{space}<{name} kind="record">\n{inner}{space}</{name}>\n'
    if isinstance(value, list):
        return "".join(element(name, part, depth) for part in value)
    return f'{space}<{name}>{escape(str(value))}</{name}>\n'


def puzzle(generator, variables, clauses):
    """Integers with bounds, sums and differences of them, and functions of them. Larger ones take z3 for ever."""
    lines = ["(reset)", "(set-logic QF_UFLIA)", "(declare-fun f (Int) Int)", "(declare-fun g (Int Int) Int)"]
    names = [f"x{index}" for index in range(variables)]
    for name in names:
        lines.append(f"(declare-const {name} Int)")
        lines.append(f"(assert (and (<= 0 {name}) (<= {name} {variables * 4})))")
    for _ in range(clauses):
        a, b, c, d = (generator.choice(names) for _ in range(4))
        number = generator.randrange(variables)
        lines.append(generator.choice([
            f"(assert (or (< (+ {a} {b}) (+ {c} {number})) (= (f {d}) {a})))",
            f"(assert (or (not (= (f {a}) (g {b} {c}))) (<= (- {d} {a}) {number})))",
            f"(assert (=> (< {a} {b}) (< (f {c}) (+ (f {d}) {number}))))",
            f"(assert (or (= (g {a} {b}) (+ {c} {number})) (> {d} {number})))",
        ]))
    return "\n".join(lines) + "\n(check-sat)\n"


def main(folder):
    generator = random.Random(42)
    records = list(orders(generator, 16000))
    (folder / "orders.json").write_text(json.dumps(records, indent=1))
    text = "".join(element("order", record, 1) for record in records)
    (folder / "orders.xml").write_text(f'<?xml version="1.0"?>\n<orders>\n{text}</orders>\n')
    (folder / "puzzles.smt2").write_text("".join(puzzle(generator, 60, 200) for _ in range(16)))


main(pathlib.Path(sys.argv[1]))
