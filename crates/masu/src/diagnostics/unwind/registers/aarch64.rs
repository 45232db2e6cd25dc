//! The registers of aarch64 in unwind tables, numbered by "DWARF for the Arm 64-bit Architecture".

use core::arch::asm;
use core::ffi::c_void;

use super::rules::Row;

/// x0 to x30 and the stack pointer.
pub(super) const COUNT: usize = 32;

/// The return address.
pub(super) const RETURN: usize = 30;
pub(super) const STACK_POINTER: usize = 31;
/// Bits of a code address; a signature may lie above them (pointer authentication).
const ADDRESS_BITS: u32 = 48;

/// The values of registers, as far as they are known: those that calls preserve.
#[derive(Clone)]
pub(super) struct Registers {
    values: [usize; COUNT],
    program_counter: usize,
}

impl Registers {
    /// The registers of the function that this is inlined into.
    #[inline(always)]
    pub(super) fn here() -> Registers {
        let mut values = [0_usize; COUNT];
        let program_counter;
        // SAFETY: Registers are stored into the array from the 19th on, and otherwise only read.
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

    /// The registers that a signal interrupted.
    ///
    /// # Safety
    ///
    /// - `context` is the third argument of the signal handler, a `ucontext_t`.
    pub(super) unsafe fn interrupted(context: *const c_void) -> Registers {
        /// The offset of x0 to x30, the stack pointer and the program counter: `struct sigcontext` of the kernel's
        /// `asm/sigcontext.h`, behind the fault's address.
        const PLACES_AT: usize = 176 + 8;
        let places = context.wrapping_byte_add(PLACES_AT).cast::<usize>();
        // SAFETY: The caller's condition: that many words lie there.
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

    /// Completes the caller's registers, whose frame ends at `base`, where no rule set them.
    pub(super) fn enter_caller(&mut self, base: usize, row: &Row) {
        if row.is_same(STACK_POINTER) {
            self.values[STACK_POINTER] = base;
        }
        self.program_counter = self.values[RETURN] & ((1 << ADDRESS_BITS) - 1);
    }

    /// The same after a simple rule, which sets the return address and not the stack pointer.
    #[inline]
    pub(super) fn enter_caller_simple(&mut self, base: usize) {
        self.values[STACK_POINTER] = base;
        self.program_counter = self.values[RETURN] & ((1 << ADDRESS_BITS) - 1);
    }
}
