"""A Python program of the ordinary kind: objects, dictionaries, strings, JSON, sorting.

Run with PYTHONMALLOC=malloc, because Python's own allocator otherwise asks malloc for 1 MiB at a time.
"""
import json
import random
import sys


class Order:
    def __init__(self, number, customer, lines):
        self.number = number
        self.customer = customer
        self.lines = lines

    def total(self):
        return sum(line["price"] * line["count"] for line in self.lines)


def make(generator, count):
    orders = []
    for number in range(count):
        lines = [
            {"article": f"article-{generator.randrange(5000)}", "price": generator.randrange(1, 10000),
             "count": generator.randrange(1, 9)}
            for _ in range(generator.randrange(1, 8))
        ]
        orders.append(Order(number, f"customer {generator.randrange(2000)}", lines))
    return orders


def main(count):
    generator = random.Random(42)
    orders = make(generator, count)
    text = json.dumps([vars(order) for order in orders])
    again = [Order(**fields) for fields in json.loads(text)]
    by_customer = {}
    for order in again:
        by_customer.setdefault(order.customer, []).append(order)
    sums = {name: sum(order.total() for order in some) for name, some in by_customer.items()}
    words = {}
    for line in text.split('"'):
        for word in line.split():
            words[word] = words.get(word, 0) + 1
    best = sorted(sums.items(), key=lambda pair: (-pair[1], pair[0]))[:3]
    print(len(text), len(words), best)


main(int(sys.argv[1]))
