//! The relocations of aarch64, as its ABI supplement lists them, except types that only linkers write.
//!
//! Code for a thread-local variable of any module calls a *descriptor*; the arena rewrites the four
//! instructions to load the variable's distance from the thread pointer instead, as linkers do where storage is static.

use super::{Cpu, Field, Fits, Origin, Quantity, Rewrite, Rule, STUB, rule};

pub(crate) const CPU: Cpu = Cpu {
    machine: object::elf::EM_AARCH64.0,
    name: "aarch64",
    rules: RULES,
    // 128 MiB, less the most that an addend may add.
    branch: (128 << 20) - (64 << 10),
    next: 0,
    largest: 248 << 20,
    stub,
};

const fn rewritten(
    number: u32,
    name: &'static str,
    formula: (Quantity, Origin),
    field: Field,
    rewrite: Rewrite,
) -> Rule {
    Rule { rewrite, ..rule(number, name, formula, field) }
}

use Origin::{BaseFrame, Frame, Place, Zero};
use Quantity::{Branch, Nothing, Slot, Symbol, Thread, ThreadPair, ThreadSlot};

/// A branch or a literal load: bits of a distance in words.
const fn words(bits: u32, at: u32) -> Field {
    Field::Bits { from: 2, bits, at, fits: Fits::Signed, exact: true }
}

/// The low 12 bits of an address in a load or store of `1 << from` bytes.
const fn low(from: u32) -> Field {
    Field::Bits { from, bits: 12 - from, at: 10, fits: Fits::Any, exact: true }
}

/// 16 bits of an address in MOVZ or MOVK.
const fn mov(from: u32, fits: Fits) -> Field {
    Field::Bits { from, bits: 16, at: 5, fits, exact: false }
}

const fn add(from: u32, fits: Fits) -> Field {
    Field::Bits { from, bits: 12, at: 10, fits, exact: false }
}

const PAGE: Field = Field::Adr { from: 12, fits: Fits::Signed };
const ADR: Field = Field::Adr { from: 0, fits: Fits::Signed };

#[rustfmt::skip]
const RULES: &[Rule] = &[
    rule(0, "R_AARCH64_NONE", (Nothing, Zero), Field::Nothing),
    rule(256, "R_AARCH64_NONE", (Nothing, Zero), Field::Nothing),
    rule(257, "R_AARCH64_ABS64", (Symbol, Zero), Field::Bytes(8, Fits::Any)),
    rule(258, "R_AARCH64_ABS32", (Symbol, Zero), Field::Bytes(4, Fits::Either)),
    rule(259, "R_AARCH64_ABS16", (Symbol, Zero), Field::Bytes(2, Fits::Either)),
    rule(260, "R_AARCH64_PREL64", (Symbol, Place), Field::Bytes(8, Fits::Any)),
    rule(261, "R_AARCH64_PREL32", (Symbol, Place), Field::Bytes(4, Fits::Either)),
    rule(262, "R_AARCH64_PREL16", (Symbol, Place), Field::Bytes(2, Fits::Either)),
    rule(263, "R_AARCH64_MOVW_UABS_G0", (Symbol, Zero), mov(0, Fits::Unsigned)),
    rule(264, "R_AARCH64_MOVW_UABS_G0_NC", (Symbol, Zero), mov(0, Fits::Any)),
    rule(265, "R_AARCH64_MOVW_UABS_G1", (Symbol, Zero), mov(16, Fits::Unsigned)),
    rule(266, "R_AARCH64_MOVW_UABS_G1_NC", (Symbol, Zero), mov(16, Fits::Any)),
    rule(267, "R_AARCH64_MOVW_UABS_G2", (Symbol, Zero), mov(32, Fits::Unsigned)),
    rule(268, "R_AARCH64_MOVW_UABS_G2_NC", (Symbol, Zero), mov(32, Fits::Any)),
    rule(269, "R_AARCH64_MOVW_UABS_G3", (Symbol, Zero), mov(48, Fits::Any)),
    rule(270, "R_AARCH64_MOVW_SABS_G0", (Symbol, Zero), Field::MoveSigned { from: 0 }),
    rule(271, "R_AARCH64_MOVW_SABS_G1", (Symbol, Zero), Field::MoveSigned { from: 16 }),
    rule(272, "R_AARCH64_MOVW_SABS_G2", (Symbol, Zero), Field::MoveSigned { from: 32 }),
    rule(273, "R_AARCH64_LD_PREL_LO19", (Symbol, Place), words(19, 5)),
    rule(274, "R_AARCH64_ADR_PREL_LO21", (Symbol, Place), ADR),
    rule(275, "R_AARCH64_ADR_PREL_PG_HI21", (Symbol, Frame), PAGE),
    rule(276, "R_AARCH64_ADR_PREL_PG_HI21_NC", (Symbol, Frame), Field::Adr { from: 12, fits: Fits::Any }),
    rule(277, "R_AARCH64_ADD_ABS_LO12_NC", (Symbol, Zero), add(0, Fits::Any)),
    rule(278, "R_AARCH64_LDST8_ABS_LO12_NC", (Symbol, Zero), low(0)),
    rule(279, "R_AARCH64_TSTBR14", (Symbol, Place), words(14, 5)),
    rule(280, "R_AARCH64_CONDBR19", (Symbol, Place), words(19, 5)),
    rule(282, "R_AARCH64_JUMP26", (Branch, Place), words(26, 0)),
    rule(283, "R_AARCH64_CALL26", (Branch, Place), words(26, 0)),
    rule(284, "R_AARCH64_LDST16_ABS_LO12_NC", (Symbol, Zero), low(1)),
    rule(285, "R_AARCH64_LDST32_ABS_LO12_NC", (Symbol, Zero), low(2)),
    rule(286, "R_AARCH64_LDST64_ABS_LO12_NC", (Symbol, Zero), low(3)),
    rule(287, "R_AARCH64_MOVW_PREL_G0", (Symbol, Place), Field::MoveSigned { from: 0 }),
    rule(288, "R_AARCH64_MOVW_PREL_G0_NC", (Symbol, Place), mov(0, Fits::Any)),
    rule(289, "R_AARCH64_MOVW_PREL_G1", (Symbol, Place), Field::MoveSigned { from: 16 }),
    rule(290, "R_AARCH64_MOVW_PREL_G1_NC", (Symbol, Place), mov(16, Fits::Any)),
    rule(291, "R_AARCH64_MOVW_PREL_G2", (Symbol, Place), Field::MoveSigned { from: 32 }),
    rule(292, "R_AARCH64_MOVW_PREL_G2_NC", (Symbol, Place), mov(32, Fits::Any)),
    rule(293, "R_AARCH64_MOVW_PREL_G3", (Symbol, Place), Field::MoveSigned { from: 48 }),
    rule(299, "R_AARCH64_LDST128_ABS_LO12_NC", (Symbol, Zero), low(4)),
    rule(309, "R_AARCH64_GOT_LD_PREL19", (Slot, Place), words(19, 5)),
    rule(311, "R_AARCH64_ADR_GOT_PAGE", (Slot, Frame), PAGE),
    rule(312, "R_AARCH64_LD64_GOT_LO12_NC", (Slot, Zero), low(3)),
    rule(313, "R_AARCH64_LD64_GOTPAGE_LO15", (Slot, BaseFrame), Field::Bits { from: 3, bits: 12, at: 10, fits: Fits::Unsigned, exact: true }),
    rule(314, "R_AARCH64_PLT32", (Branch, Place), Field::Bytes(4, Fits::Signed)),
    rule(315, "R_AARCH64_GOTPCREL32", (Slot, Place), Field::Bytes(4, Fits::Signed)),
    rule(513, "R_AARCH64_TLSGD_ADR_PAGE21", (ThreadPair, Frame), PAGE),
    rule(514, "R_AARCH64_TLSGD_ADD_LO12_NC", (ThreadPair, Zero), add(0, Fits::Any)),
    rule(541, "R_AARCH64_TLSIE_ADR_GOTTPREL_PAGE21", (ThreadSlot, Frame), PAGE),
    rule(542, "R_AARCH64_TLSIE_LD64_GOTTPREL_LO12_NC", (ThreadSlot, Zero), low(3)),
    rule(543, "R_AARCH64_TLSIE_LD_GOTTPREL_PREL19", (ThreadSlot, Place), words(19, 5)),
    rule(545, "R_AARCH64_TLSLE_MOVW_TPREL_G1", (Thread, Zero), Field::MoveSigned { from: 16 }),
    rule(546, "R_AARCH64_TLSLE_MOVW_TPREL_G1_NC", (Thread, Zero), mov(16, Fits::Any)),
    rule(547, "R_AARCH64_TLSLE_MOVW_TPREL_G0", (Thread, Zero), Field::MoveSigned { from: 0 }),
    rule(548, "R_AARCH64_TLSLE_MOVW_TPREL_G0_NC", (Thread, Zero), mov(0, Fits::Any)),
    rule(549, "R_AARCH64_TLSLE_ADD_TPREL_HI12", (Thread, Zero), add(12, Fits::Unsigned)),
    rule(550, "R_AARCH64_TLSLE_ADD_TPREL_LO12", (Thread, Zero), add(0, Fits::Unsigned)),
    rule(551, "R_AARCH64_TLSLE_ADD_TPREL_LO12_NC", (Thread, Zero), add(0, Fits::Any)),
    rule(562, "R_AARCH64_TLSDESC_ADR_PAGE21", (ThreadSlot, Frame), PAGE),
    rewritten(563, "R_AARCH64_TLSDESC_LD64_LO12", (ThreadSlot, Zero), low(3), Rewrite::DescriptorLoad),
    rewritten(564, "R_AARCH64_TLSDESC_ADD_LO12", (Nothing, Zero), Field::Nothing, Rewrite::Nop),
    rewritten(569, "R_AARCH64_TLSDESC_CALL", (Nothing, Zero), Field::Nothing, Rewrite::Nop),
];

const NOP: u32 = 0xd503_201f;

/// `adrp x16, slot; ldr x17, [x16, slot]; br x17`, and a trap behind it.
fn stub(at: usize, slot: usize) -> [u8; STUB] {
    let mut code = [0; STUB];
    let words = [0x9000_0010_u32, 0xf940_0211, 0xd61f_0220, 0xd420_0000];
    for (bytes, word) in code.chunks_exact_mut(4).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    let frame = |address: usize| address as i128 & !0xfff;
    // The stub and the slot are in one range of at most 1 GiB, so that neither store can fail.
    let _ = PAGE.store(&mut code, 0, frame(slot) - frame(at));
    let _ = low(3).store(&mut code, 4, slot as i128);
    code
}

/// Rewrites one of the four instructions that call a descriptor; `false` if the instruction is outside the bytes.
pub(crate) fn rewrite(bytes: &mut [u8], offset: usize, rewrite: Rewrite) -> bool {
    let Some(end) = offset.checked_add(4) else { return false };
    let Some(code) = bytes.get_mut(offset..end) else { return false };
    let old = u32::from_le_bytes([code[0], code[1], code[2], code[3]]);
    let new = match rewrite {
        Rewrite::Nop => NOP,
        // The distance goes where the descriptor's answer would: into x0.
        Rewrite::DescriptorLoad => old & !31,
        Rewrite::No | Rewrite::GotLoad => old,
    };
    code.copy_from_slice(&new.to_le_bytes());
    true
}
