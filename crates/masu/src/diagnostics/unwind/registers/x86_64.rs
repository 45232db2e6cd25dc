//! The registers of x86-64 in unwind tables, numbered by the System V ABI (figure 3.36).

use core::arch::asm;
use core::ffi::c_void;

use super::rules::Row;

/// Registers 0 to 15, and the return address as number 16.
pub(super) const COUNT: usize = 17;

const RBX: usize = 3;
const RBP: usize = 6;
pub(super) const STACK_POINTER: usize = 7;
/// The return address.
pub(super) const RETURN: usize = 16;

/// The values of registers, as far as they are known: those that calls preserve.
#[derive(Clone)]
pub(super) struct Registers([usize; COUNT]);

impl Registers {
    /// The registers of the function that this is inlined into.
    #[inline(always)]
    pub(super) fn here() -> Registers {
        let mut values = [0; COUNT];
        let (rbx, rbp, rsp, r12, r13, r14, r15, rip);
        // SAFETY: Registers are only read.
        unsafe {
            asm!(
                "mov {rbp}, rbp",
                "mov {rsp}, rsp",
                "mov {r12}, r12",
                "mov {r13}, r13",
                "lea {rip}, [rip]",
                rbp = out(reg) rbp,
                rsp = out(reg) rsp,
                r12 = out(reg) r12,
                r13 = out(reg) r13,
                rip = out(reg) rip,
                options(nomem, nostack, preserves_flags),
            );
        }
        // SAFETY: As above.
        unsafe {
            asm!(
                "mov {rbx}, rbx",
                "mov {r14}, r14",
                "mov {r15}, r15",
                rbx = out(reg) rbx,
                r14 = out(reg) r14,
                r15 = out(reg) r15,
                options(nomem, nostack, preserves_flags),
            );
        }
        values[RBX] = rbx;
        values[RBP] = rbp;
        values[STACK_POINTER] = rsp;
        values[12..].copy_from_slice(&[r12, r13, r14, r15, rip]);
        Registers(values)
    }

    /// The registers that a signal interrupted.
    ///
    /// # Safety
    ///
    /// - `context` is the third argument of the signal handler, a `ucontext_t`.
    pub(super) unsafe fn interrupted(context: *const c_void) -> Registers {
        /// The offset of the registers, and their order: `gregset_t` of the C library's `sys/ucontext.h`, as the kernel
        /// writes it.
        const PLACES_AT: usize = 40;
        const PLACES: [usize; COUNT] = [13, 12, 14, 11, 9, 8, 10, 15, 0, 1, 2, 3, 4, 5, 6, 7, 16];
        let places = context.wrapping_byte_add(PLACES_AT).cast::<usize>();
        // SAFETY: The caller's condition: that many words lie there.
        Registers(PLACES.map(|place| unsafe { places.add(place).read() }))
    }

    pub(super) fn get(&self, register: usize) -> Option<usize> {
        self.0.get(register).copied()
    }

    pub(super) fn set(&mut self, register: usize, value: usize) {
        if let Some(place) = self.0.get_mut(register) {
            *place = value;
        }
    }

    pub(super) fn program_counter(&self) -> usize {
        self.0[RETURN]
    }

    pub(super) fn stack_pointer(&self) -> usize {
        self.0[STACK_POINTER]
    }

    /// Completes the caller's registers, whose frame ends at `base`, where no rule set them.
    pub(super) fn enter_caller(&mut self, base: usize, row: &Row) {
        if row.is_same(STACK_POINTER) {
            self.0[STACK_POINTER] = base;
        }
        if row.is_same(RETURN) {
            self.0[RETURN] = 0;
        }
    }

    /// The same after a simple rule, which sets the return address and not the stack pointer.
    #[inline]
    pub(super) fn enter_caller_simple(&mut self, base: usize) {
        self.0[STACK_POINTER] = base;
    }
}
