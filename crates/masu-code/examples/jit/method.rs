//! The methods: two dozen operations on one number, interpreted or written as C, with the same result.
//!
//! The operations are pseudorandom with a fixed seed, so every run does the same work. Their code is as long as that of a
//! small method of a real program. The interpreter is a machine with a few registers; compiling saves the decoding of each
//! operation and the stores of its results.

/// A method's code.
pub(crate) type Code = extern "C" fn(u64) -> u64;

/// Operations of a method.
const OPERATIONS: u64 = 24;

/// Registers of the interpreter.
const REGISTERS: usize = 4;

/// What is done to a register's value.
#[derive(Clone, Copy)]
enum Kind {
    Multiply(u64),
    Fold(u32),
    Add(u64),
}

#[derive(Clone, Copy)]
struct Operation {
    kind: Kind,
    from: usize,
    to: usize,
}

/// The name in objects and libraries of the method with this number.
pub(crate) fn symbol(number: usize) -> String {
    format!("m{number:05}")
}

pub(crate) struct Method {
    pub(crate) number: usize,
    operations: Vec<Operation>,
}

impl Method {
    pub(crate) fn new(number: usize) -> Method {
        let draw = |step: u64| {
            let place = number as u64 * OPERATIONS + step + 1;
            let mixed = place.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33
        };
        let operation = |step| {
            let kind = match step % 3 {
                0 => Kind::Multiply(draw(step) | 1),
                1 => Kind::Fold(u32::try_from(draw(step) % 40).unwrap_or(0) + 5),
                _ => Kind::Add(draw(step)),
            };
            let from = step as usize % REGISTERS;
            Operation { kind, from, to: (from + 1) % REGISTERS }
        };
        Method { number, operations: (0..OPERATIONS).map(operation).collect() }
    }

    pub(crate) fn symbol(&self) -> String {
        symbol(self.number)
    }

    pub(crate) fn interpret(&self, value: u64) -> u64 {
        let mut registers = [value; REGISTERS];
        let mut last = 0;
        for Operation { kind, from, to } in &self.operations {
            let value = registers[*from];
            registers[*to] = match *kind {
                Kind::Multiply(factor) => value.wrapping_mul(factor),
                Kind::Fold(bits) => value ^ (value >> bits),
                Kind::Add(term) => value.wrapping_add(term),
            };
            last = *to;
        }
        registers[last]
    }

    pub(crate) fn text(&self) -> String {
        let lines = self.operations.iter().map(|operation| match operation.kind {
            Kind::Multiply(factor) => format!("  value *= {factor}UL;\n"),
            Kind::Fold(bits) => format!("  value ^= value >> {bits};\n"),
            Kind::Add(term) => format!("  value += {term}UL;\n"),
        });
        let body: String = lines.collect();
        let name = self.symbol();
        format!("unsigned long {name}(unsigned long value) {{\n{body}  return value;\n}}\n")
    }
}
