"""Writes what the programs of judgement.toml read: the same bytes every time. `python3 inputs.py FOLDER`"""
import math
import pathlib
import random
import struct
import sys
import wave
import zlib

VOWELS, CONSONANTS = "aeiou", "bcdfghklmnprstvz"


def vocabulary(generator, count):
    def word():
        parts = (generator.choice(CONSONANTS) + generator.choice(VOWELS) for _ in range(generator.randrange(1, 5)))
        return "".join(parts)
    return [word() for _ in range(count)]


def sentences(generator, words, count):
    for _ in range(count):
        some = [words[int(len(words) * generator.random() ** 3)] for _ in range(generator.randrange(6, 16))]
        yield " ".join(some).capitalize() + "."


def paragraphs(generator, words, count, mark=""):
    return "\n\n".join(mark + "\n".join(sentences(generator, words, 6)) for _ in range(count)) + "\n"


def orders(generator, words, count):
    for number in range(count):
        fields = [number, generator.choice(words), f"city{generator.randrange(300)}", generator.randrange(1, 99999) / 100,
                  f"{generator.choice(words)} {generator.choice(words)}"]
        yield "\t".join(map(str, fields))


def graph(generator, nodes, edges):
    lines = [f'  n{number} [label="node {number}"];' for number in range(nodes)]
    lines += [f"  n{generator.randrange(0, n)} -> n{n};" for n in range(1, nodes)]
    lines += [f"  n{generator.randrange(nodes)} -> n{generator.randrange(nodes)};" for _ in range(edges)]
    return "digraph g {\n" + "\n".join(lines) + "\n}\n"


def pixels(generator, width, height):
    rows = []
    for y in range(height):
        row = bytearray()
        for x in range(width):
            noise = generator.randrange(24)
            row += bytes(((x * 255 // width + noise) % 256, (y * 255 // height + noise) % 256, (x ^ y) & 255))
        rows.append(bytes(row))
    return rows


def png(rows, width):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    header = struct.pack(">IIBBBBB", width, len(rows), 8, 2, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + row for row in rows), 1)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def drawing(generator, shapes):
    lines = ['<svg xmlns="http://www.w3.org/2000/svg" width="1000" height="1000">']
    for number in range(shapes):
        points = " ".join(f"{generator.randrange(1000)},{generator.randrange(1000)}" for _ in range(6))
        color = f"#{generator.randrange(1 << 24):06x}"
        lines.append(f'<g opacity="0.{number % 9 + 1}"><path d="M {points} z" fill="{color}" stroke="black"/></g>')
    return "\n".join(lines + ["</svg>\n"])


def grammar(rules):
    tokens = " ".join(f"T{number}" for number in range(rules))
    lines = [f"%token NUMBER {tokens}", "%left '+' '-'", "%left '*'", "%%", "list: %empty | list statement ';' ;"]
    lines.append("statement: " + "\n  | ".join(f"s{number}" for number in range(rules)) + " ;")
    for number in range(rules):
        lines.append(f"s{number}: T{number} expression | T{number} '(' list ')' | T{number} T{(number * 7) % rules} ;")
    lines.append("expression: NUMBER | expression '+' expression | expression '-' expression | expression '*' expression"
                 " | '(' expression ')' ;")
    return "\n".join(lines + ["%%\n"])


def markdown(generator, words, count):
    lines = []
    for number in range(count):
        lines.append(f"# Chapter {number}\n")
        lines.append(" ".join(f"*{word}* [{word}](http://example.org/{word})" for word in generator.sample(words, 20)))
        lines.append("\n" + "\n".join(f"- {text} `code` **bold**" for text in sentences(generator, words, 12)))
        lines.append("\n> " + next(sentences(generator, words, 1)) + "\n\n    code block\n")
    return "\n".join(lines)


def web_page(generator, words, count):
    rows = (f"<tr><td>{number}</td><td><a href='/{word}'>{word}</a></td><td><b>{text}</b></td></tr>"
            for number, (word, text) in enumerate(zip(generator.choices(words, k=count), sentences(generator, words, count))))
    table = "\n".join(rows)
    return f"<!DOCTYPE html>\n<html lang='en'><head><title>t</title></head><body><table>{table}</table></body></html>\n"


def postscript(generator, words, pages):
    lines = ["%!PS"]
    for _ in range(pages):
        lines.append("/Times-Roman findfont 9 scalefont setfont")
        for line, text in enumerate(sentences(generator, words, 60)):
            lines.append(f"40 {780 - 12 * line} moveto ({text[:90]}) show")
        for _ in range(120):
            numbers = " ".join(str(generator.randrange(600)) for _ in range(6))
            lines.append(f"newpath {generator.randrange(600)} {generator.randrange(800)} moveto {numbers} curveto stroke")
        lines.append("showpage")
    return "\n".join(lines) + "\n"


def pdf(generator, words, pages):
    streams = []
    for _ in range(pages):
        texts = "\n".join(f"({text[:95]}) Tj T*" for text in sentences(generator, words, 60))
        streams.append(f"BT /F 9 Tf 12 TL 40 780 Td\n{texts}\nET")
    kids = " ".join(f"{4 + 2 * page} 0 R" for page in range(pages))
    parts = ["<< /Type /Catalog /Pages 2 0 R >>", f"<< /Type /Pages /Kids [{kids}] /Count {pages} >>",
             "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    for page, stream in enumerate(streams):
        parts.append(f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Resources << /Font << /F 3 0 R >> >> "
                     f"/Contents {5 + 2 * page} 0 R >>")
        parts.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    text, places = "%PDF-1.4\n", []
    for number, part in enumerate(parts, 1):
        places.append(len(text))
        text += f"{number} 0 obj\n{part}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    end = f"trailer << /Size {len(parts) + 1} /Root 1 0 R >>\nstartxref\n{len(text)}\n%%EOF\n"
    return text + f"xref\n0 {len(parts) + 1}\n0000000000 65535 f \n{table}{end}"


def transport(generator, count):
    costs = [[generator.randrange(1, 99) for _ in range(count)] for _ in range(count)]
    rows = "\n".join(f"{number} " + " ".join(map(str, row)) for number, row in enumerate(costs, 1))
    head = f"param n := {count};\nset I := 1..n;\nparam c{{I, I}};\nvar x{{I, I}} >= 0, <= 1;\n"
    head += "minimize cost: sum{i in I, j in I} c[i, j] * x[i, j];\n"
    head += "s.t. from{i in I}: sum{j in I} x[i, j] = 1;\ns.t. onto{j in I}: sum{i in I} x[i, j] = 1;\nsolve;\ndata;\n"
    columns = " ".join(str(number) for number in range(1, count + 1))
    return head + f"param c : {columns} :=\n{rows} ;\nend;\n"


def puzzle(generator, count):
    names = [f"x{index}" for index in range(count)]
    lines = ["(reset)", "(set-logic QF_LIA)"] + [f"(declare-const {name} Int)" for name in names]
    lines += [f"(assert (and (<= 0 {name}) (<= {name} {count})))" for name in names]
    for _ in range(2 * count):
        a, b, c = generator.sample(names, 3)
        lines.append(f"(assert (or (< (+ {a} {b}) {c}) (> {a} (+ {b} {generator.randrange(4)})) (= {b} {c})))")
    return "\n".join(lines) + "\n(check-sat)\n"


def messages(generator, words, count):
    kinds = ["int32", "string", "double", "bool", "bytes"]
    lines = ['syntax = "proto3";', "package judged;"]
    for number in range(count):
        fields = "\n".join(f"  {generator.choice(kinds)} {generator.choice(words)}_{field} = {field};" for field in range(1, 12))
        other = f"  repeated M{generator.randrange(count)} others = 20;\n  map<string, M{generator.randrange(count)}> named = 21;"
        lines.append(f"message M{number} {{\n{fields}\n{other}\n}}")
    return "\n".join(lines) + "\n"


def chip(count):
    lines = []
    for number in range(count):
        lines.append(f"module m{number}(input clk, input [31:0] a, output reg [31:0] b);\n  wire [31:0] w;")
        inner = f"  m{number - 1} inner(clk, a + {number}, w);" if number % 40 else "  assign w = a ^ (a << 3);"
        lines.append(inner + f"\n  always @(posedge clk) case (a[3:0])")
        lines += [f"    4'd{choice}: b <= w * {choice + number} + (a >> {choice});" for choice in range(15)]
        lines.append("    default: b <= w;\n  endcase\nendmodule")
    return "\n".join(lines) + "\n"


def assembly(generator, count):
    registers = ["rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9"]
    lines = ["bits 64", "section .text"]
    for number in range(count):
        lines.append(f"label{number}:\n  mov {generator.choice(registers)}, {generator.choice(registers)}")
        lines.append(f"  add {generator.choice(registers)}, {generator.randrange(1 << 20)}")
        lines.append(f"  jz label{generator.randrange(count)}")
    return "\n".join(lines) + "\n"


def sources(generator, count):
    lines = ["#include <vector>", "#include <string>"]
    for number in range(count):
        lines.append(f"static int f{number}(const std::vector<int> &v, int x) {{\n  int y = x;\n  int *p = &y;")
        lines.append(f"  for (unsigned i = 0; i < v.size(); i++) {{\n    if (v[i] > {generator.randrange(99)}) y += v[i]; "
                     f"else y -= x * {number};\n    while (*p > 100) *p /= 2;\n  }}")
        call = f"f{generator.randrange(number)}(v, y)" if number else "y"
        lines.append(f"  std::string s = \"a\";\n  s += std::to_string(y);\n  return {call} + (int)s.size();\n}}")
    return "\n".join(lines) + "\n"


def journal(generator, words, count):
    for number in range(count):
        day = f"2020/{number * 12 // count + 1:02}/{generator.randrange(28) + 1:02}"
        value = generator.randrange(1, 99999) / 100
        account = f"Expenses:{generator.choice(words)[:6]}:{generator.randrange(40)}"
        yield f"{day} {generator.choice(words)}\n    {account}    ${value:.2f}\n    Assets:Bank:{generator.randrange(9)}\n"


def commits(generator, words, count, files):
    texts = {name: list(sentences(generator, words, 200)) for name in range(files)}
    out = []
    for number in range(count):
        changed = range(files) if number == 0 else generator.sample(range(files), 3)
        out.append(f"commit refs/heads/main\ncommitter A <a@example.org> {1600000000 + number} +0000\ndata 6\nchange")
        for name in changed:
            texts[name][generator.randrange(200)] = next(sentences(generator, words, 1))
            text = "\n".join(texts[name]) + "\n"
            out.append(f"M 100644 inline file{name}\ndata {len(text)}\n{text}")
    return "feature done\n" + "\n".join(out) + "\ndone\n"


def reads(generator, count):
    yield "@HD\tVN:1.6\tSO:unsorted\n@SQ\tSN:chr1\tLN:100000000"
    for number in range(count):
        bases = "".join(generator.choices("ACGT", k=100))
        yield f"r{number}\t0\tchr1\t{generator.randrange(1, 99999900)}\t60\t100M\t*\t0\t0\t{bases}\t{'I' * 100}"


def sound(path, generator, seconds):
    with wave.open(str(path), "wb") as out:
        out.setnchannels(2)
        out.setsampwidth(2)
        out.setframerate(44100)
        frames = bytearray()
        for number in range(44100 * seconds):
            value = int(9000 * math.sin(number / 20) + 4000 * math.sin(number / 7.3) + generator.randrange(-500, 500))
            frames += struct.pack("<hh", value, value // 2 + generator.randrange(-200, 200))
        out.writeframes(bytes(frames))


def genes(generator, count, length):
    first = generator.choices("ACGT", k=length)
    for number in range(count):
        bases = "".join(generator.choice("ACGT") if generator.random() < 0.1 else base for base in first)
        yield f">g{number}\n{bases}"


def modules(generator, count):
    lines = ["type shape = Dot | Line of int * int | Group of shape list"]
    for number in range(count):
        lines.append(f"let rec f{number} s n = match s with Dot -> n + {number} | Line (a, b) when a > {generator.randrange(99)} -> a * n + b"
                     f" | Line (a, b) -> List.fold_left (+) n [a; b; {number}]"
                     f" | Group all -> List.fold_left (fun n s -> f{number} s (n + {generator.randrange(9)})) n (List.rev all)")
    return "\n".join(lines) + "\n"


def main(folder):
    generator = random.Random(24)
    words = sorted(set(vocabulary(generator, 40000)))
    generator.shuffle(words)

    def write(name, text):
        (folder / name).write_text(text)

    write("orders.tsv", "\n".join(orders(generator, words, 80000)) + "\n")
    write("text.txt", paragraphs(generator, words, 2500))
    write("graph.dot", graph(generator, 200, 120))
    write("picture.svg", drawing(generator, 300))
    write("grammar.y", grammar(260))
    write("doc.md", markdown(generator, words, 3000))
    write("doc.ms", paragraphs(generator, words, 1500, ".PP\n"))
    write("doc.html", web_page(generator, words, 30000))
    write("doc.ps", postscript(generator, words, 40))
    write("doc.pdf", pdf(generator, words, 300))
    write("transport.mod", transport(generator, 130))
    write("little.smt2", "".join(puzzle(generator, 20) for _ in range(12)))
    write("messages.proto", messages(generator, words, 250))
    write("chip.v", chip(1200))
    write("code.asm", assembly(generator, 16000))
    write("sources.cpp", sources(generator, 150))
    write("journal.dat", "\n".join(journal(generator, words, 2000)))
    write("history.stream", commits(generator, words, 800, 60))
    write("reads.sam", "\n".join(reads(generator, 120000)) + "\n")
    width, rows = 1100, pixels(generator, 1100, 800)
    (folder / "image.ppm").write_bytes(b"P6 %d %d 255\n" % (width, len(rows)) + b"".join(rows))
    (folder / "image.png").write_bytes(png(rows, width))
    sound(folder / "sound.wav", generator, 30)
    write("chapters.md", markdown(generator, words, 60))
    write("short.txt", paragraphs(generator, words, 12))
    write("page.html", web_page(generator, words, 12000))
    write("genes.fa", "\n".join(genes(generator, 24, 400)) + "\n")
    write("shapes.ml", modules(generator, 450))
    write("gates.v", chip(240))
    write("library.cpp", sources(generator, 600))


main(pathlib.Path(sys.argv[1]))
