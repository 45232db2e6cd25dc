//! The registers of aarch64 that unwind tables speak of, by the numbers of "DWARF for the Arm 64-bit
//! Architecture".

use core::arch::asm;
use core::ffi::c_void;

use super::rules::Row;

/// x0 to x30 and the stack pointer.
pub(super) const COUNT: usize = 32;

/// Where the caller goes on.
pub(super) const RETURN: usize = 30;
pub(super) const STACK_POINTER: usize = 31;
/// Bits of a code address; a signature may stand above them (pointer authentication).
const ADDRESS_BITS: u32 = 48;

/// What registers hold, as far as that is known: those that calls keep.
#[derive(Clone)]
pub(super) struct Registers {
    values: [usize; COUNT],
    program_counter: usize,
}

impl Registers {
    /// Those of the function that this is inlined into.
    #[inline(always)]
    pub(super) fn here() -> Registers {
        let mut values = [0_usize; COUNT];
        let program_counter;
        // SAFETY: Registers are stored into the array from the 19th on, and read besides.
        unsafe {
            asm!(
                "stp x19, x20, [{place}]",
                "stp x21, x22, [{place}, #16]",
                "stp x23, x24, [{place}, #32]",
                "stp x25, x26, [{place}, #48]",
                "stp x27, x28, [{place}, #64]",
                "stp x29, x30, [{place}, #80]",
                "mov {pc}, sp",
                "str {pc}, [{place}, #96]",
                "adr {pc}, .",
                place = in(reg) values.as_mut_ptr().wrapping_add(19),
                pc = out(reg) program_counter,
                options(nostack, preserves_flags),
            );
        }
        Registers { values, program_counter }
    }

    /// Those of what a signal interrupted.
    ///
    /// # Safety
    ///
    /// - `context` is the third argument of the signal's handler, a `ucontext_t`.
    pub(super) unsafe fn interrupted(context: *const c_void) -> Registers {
        /// Where x0 to x30, the stack pointer and the program counter stand in it: `struct sigcontext` of the
        /// kernel's `asm/sigcontext.h`, behind the address of a fault.
        const PLACES_AT: usize = 176 + 8;
        let places = context.wrapping_byte_add(PLACES_AT).cast::<usize>();
        // SAFETY: The caller's condition: so many words lie there.
        let values = core::array::from_fn(|place| unsafe { places.add(place).read() });
        // SAFETY: As above.
        let program_counter = unsafe { places.add(COUNT).read() };
        Registers { values, program_counter }
    }

    pub(super) fn get(&self, register: usize) -> Option<usize> {
        self.values.get(register).copied()
    }

    pub(super) fn set(&mut self, register: usize, value: usize) {
        if let Some(place) = self.values.get_mut(register) {
            *place = value;
        }
    }

    pub(super) fn program_counter(&self) -> usize {
        self.program_counter
    }

    pub(super) fn stack_pointer(&self) -> usize {
        self.values[STACK_POINTER]
    }

    /// Makes these the caller's, whose frame ends at `base`, where no rule says otherwise.
    pub(super) fn enter_caller(&mut self, base: usize, row: &Row) {
        if row.is_same(STACK_POINTER) {
            self.values[STACK_POINTER] = base;
        }
        self.program_counter = self.values[RETURN] & ((1 << ADDRESS_BITS) - 1);
    }

    /// The same where rules say where it goes on, and nothing of the stack pointer.
    #[inline]
    pub(super) fn enter_caller_of_usual(&mut self, base: usize) {
        self.values[STACK_POINTER] = base;
        self.program_counter = self.values[RETURN] & ((1 << ADDRESS_BITS) - 1);
    }
}
