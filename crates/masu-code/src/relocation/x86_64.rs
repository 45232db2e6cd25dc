//! The relocations of x86-64, as its ABI supplement lists them, except types that only linkers write.

use super::{Cpu, Field, Fits, Origin, Quantity, Rewrite, Rule, STUB, rule};

pub(crate) const CPU: Cpu = Cpu {
    machine: object::elf::EM_X86_64.0,
    name: "x86-64",
    rules: RULES,
    branch: super::REACH,
    // The end of the instruction, of which the field is the last.
    next: 4,
    largest: 1 << 30,
    stub,
};

const fn relaxed(number: u32, name: &'static str) -> Rule {
    let formula = (Quantity::Slot, Origin::Place);
    Rule { rewrite: Rewrite::GotLoad, ..rule(number, name, formula, SIGNED_32) }
}

use Origin::{Base, Place, Zero};
use Quantity::{Branch, Size, Slot, Symbol};
use Quantity::{Thread, ThreadModule, ThreadPair, ThreadPlace, ThreadSlot};

const ANY_64: Field = Field::Bytes(8, Fits::Any);
const SIGNED_32: Field = Field::Bytes(4, Fits::Signed);

#[rustfmt::skip]
const RULES: &[Rule] = &[
    rule(0, "R_X86_64_NONE", (Quantity::Nothing, Zero), Field::Nothing),
    rule(1, "R_X86_64_64", (Symbol, Zero), ANY_64),
    rule(2, "R_X86_64_PC32", (Symbol, Place), SIGNED_32),
    rule(3, "R_X86_64_GOT32", (Slot, Base), SIGNED_32),
    rule(4, "R_X86_64_PLT32", (Branch, Place), SIGNED_32),
    rule(9, "R_X86_64_GOTPCREL", (Slot, Place), SIGNED_32),
    rule(10, "R_X86_64_32", (Symbol, Zero), Field::Bytes(4, Fits::Unsigned)),
    rule(11, "R_X86_64_32S", (Symbol, Zero), SIGNED_32),
    rule(12, "R_X86_64_16", (Symbol, Zero), Field::Bytes(2, Fits::Either)),
    rule(13, "R_X86_64_PC16", (Symbol, Place), Field::Bytes(2, Fits::Signed)),
    rule(14, "R_X86_64_8", (Symbol, Zero), Field::Bytes(1, Fits::Either)),
    rule(15, "R_X86_64_PC8", (Symbol, Place), Field::Bytes(1, Fits::Signed)),
    rule(17, "R_X86_64_DTPOFF64", (ThreadPlace, Zero), ANY_64),
    rule(18, "R_X86_64_TPOFF64", (Thread, Zero), ANY_64),
    rule(19, "R_X86_64_TLSGD", (ThreadPair, Place), SIGNED_32),
    rule(20, "R_X86_64_TLSLD", (ThreadModule, Place), SIGNED_32),
    rule(21, "R_X86_64_DTPOFF32", (ThreadPlace, Zero), SIGNED_32),
    rule(22, "R_X86_64_GOTTPOFF", (ThreadSlot, Place), SIGNED_32),
    rule(23, "R_X86_64_TPOFF32", (Thread, Zero), SIGNED_32),
    rule(24, "R_X86_64_PC64", (Symbol, Place), ANY_64),
    rule(25, "R_X86_64_GOTOFF64", (Symbol, Base), ANY_64),
    rule(26, "R_X86_64_GOTPC32", (Quantity::Base, Place), SIGNED_32),
    rule(27, "R_X86_64_GOT64", (Slot, Base), ANY_64),
    rule(28, "R_X86_64_GOTPCREL64", (Slot, Place), ANY_64),
    rule(29, "R_X86_64_GOTPC64", (Quantity::Base, Place), ANY_64),
    rule(31, "R_X86_64_PLTOFF64", (Branch, Base), ANY_64),
    rule(32, "R_X86_64_SIZE32", (Size, Zero), Field::Bytes(4, Fits::Unsigned)),
    rule(33, "R_X86_64_SIZE64", (Size, Zero), ANY_64),
    relaxed(41, "R_X86_64_GOTPCRELX"),
    relaxed(42, "R_X86_64_REX_GOTPCRELX"),
];

/// `jmp *slot(%rip)`, and traps behind it.
fn stub(at: usize, slot: usize) -> [u8; STUB] {
    let mut code = [0xcc; STUB];
    code[..2].copy_from_slice(&[0xff, 0x25]);
    // The stub and the slot are in one range of at most 1 GiB.
    let distance = slot.wrapping_sub(at + 6) as u32;
    code[2..6].copy_from_slice(&distance.to_le_bytes());
    code
}

/// Whether the four bytes at `offset` are the target of a call or a jump.
pub(crate) fn is_branch(bytes: &[u8], offset: usize) -> bool {
    let before = |distance: usize| offset.checked_sub(distance).and_then(|at| bytes.get(at));
    let conditional = before(2) == Some(&0x0f) && before(1).is_some_and(|byte| byte >> 4 == 8);
    matches!(before(1), Some(0xe8 | 0xe9)) || conditional
}

/// Rewrites an instruction that loads `target` from the GOT into an instruction that refers to `target` itself, as the
/// ABI supplement says in "Optimize GOTPCRELX Relocations"; returns `true` where that was possible.
///
/// `place` is the address of the four bytes at `offset`.
pub(crate) fn relax(bytes: &mut [u8], offset: usize, place: usize, target: usize) -> bool {
    let Some(start) = offset.checked_sub(2) else { return false };
    let Some(end) = offset.checked_add(4) else { return false };
    let Some(code) = bytes.get_mut(start..end) else { return false };
    let next = place as i128 + 4;
    let near = |from: i128| i32::try_from(target as i128 - from).ok();
    match (code[0], code[1]) {
        // mov foo@GOTPCREL(%rip), %reg: lea foo(%rip), %reg.
        (0x8b, mode) if mode & 0xc7 == 0x05 => {
            let Some(distance) = near(next) else { return false };
            code[0] = 0x8d;
            code[2..].copy_from_slice(&distance.to_le_bytes());
        }
        // call *foo@GOTPCREL(%rip): addr32 call foo.
        (0xff, 0x15) => {
            let Some(distance) = near(next) else { return false };
            code[..2].copy_from_slice(&[0x67, 0xe8]);
            code[2..].copy_from_slice(&distance.to_le_bytes());
        }
        // jmp *foo@GOTPCREL(%rip): jmp foo; nop.
        (0xff, 0x25) => {
            let Some(distance) = near(next - 1) else { return false };
            code[0] = 0xe9;
            code[1..5].copy_from_slice(&distance.to_le_bytes());
            code[5] = 0x90;
        }
        _ => return false,
    }
    true
}

/// Whether the four bytes at `offset` are the whole operand of `lea foo(%rip), %reg`.
pub(crate) fn is_address(bytes: &[u8], offset: usize) -> bool {
    let start = offset.checked_sub(3);
    let code = start.and_then(|start| bytes.get(start..offset));
    matches!(code, Some(&[0x48 | 0x4c, 0x8d, mode]) if mode & 0xc7 == 0x05)
}

/// Rewrites that instruction into `mov slot(%rip), %reg`, the reverse of [`relax`]; returns `true` where the slot is in
/// reach.
pub(crate) fn load_address(bytes: &mut [u8], offset: usize, place: usize, slot: usize) -> bool {
    let distance = i32::try_from(slot as i128 - (place as i128 + 4));
    let code = bytes.get_mut(offset.saturating_sub(2)..offset.saturating_add(4));
    let (Ok(distance), Some(code)) = (distance, code) else { return false };
    code[0] = 0x8b;
    code[2..].copy_from_slice(&distance.to_le_bytes());
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_from_the_got_become_addresses() {
        // mov 0(%rip),%rax; call *0(%rip); jmp *0(%rip), each to an address 0x100 ahead.
        for (before, after) in [
            ([0x48, 0x8b, 0x05, 0, 0, 0, 0], [0x48, 0x8d, 0x05, 0xf9, 0, 0, 0]),
            ([0x90, 0xff, 0x15, 0, 0, 0, 0], [0x90, 0x67, 0xe8, 0xf9, 0, 0, 0]),
            ([0x90, 0xff, 0x25, 0, 0, 0, 0], [0x90, 0xe9, 0xfa, 0, 0, 0, 0x90]),
        ] {
            let mut bytes = before;
            assert!(relax(&mut bytes, 3, 0x1003, 0x1100));
            assert_eq!(bytes, after);
        }
    }

    #[test]
    fn other_instructions_and_far_addresses_stay() {
        let mut add = [0x48, 0x03, 0x05, 0, 0, 0, 0];
        assert!(!relax(&mut add, 3, 0x1003, 0x1100));
        let mut load = [0x48, 0x8b, 0x05, 0, 0, 0, 0];
        assert!(!relax(&mut load, 3, 0x1003, 0x1_0000_0000));
        assert!(!relax(&mut load, 1, 0x1003, 0x1100));
        assert!(!relax(&mut load, usize::MAX, 0x1003, 0x1100));
        assert_eq!(load, [0x48, 0x8b, 0x05, 0, 0, 0, 0]);
    }
}
