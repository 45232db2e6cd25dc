//! cranelift-jit's own tests, with modules whose memory is an arena's.
//!
//! Relies on `CRANELIFT_JIT`, the folder of that crate's source, which `cargo xtask cranelift` sets.

use std::sync::LazyLock;

use masu_code::{Arena, Options};

static ARENA: LazyLock<Arena> =
    LazyLock::new(|| Arena::open(Options::default()).expect("an arena opens"));

/// Takes the place of the crate: a builder whose modules have the arena's memory.
mod cranelift_jit {
    use cranelift_codegen::ir::LibCall;
    use cranelift_codegen::isa::OwnedTargetIsa;

    pub use jit::JITModule;

    pub struct JITBuilder;

    impl JITBuilder {
        pub fn with_isa(
            isa: OwnedTargetIsa,
            names: Box<dyn Fn(LibCall) -> String + Send + Sync>,
        ) -> jit::JITBuilder {
            let mut builder = jit::JITBuilder::with_isa(isa, names);
            let (provider, _) = masu_code_cranelift::Provider::new(&super::ARENA);
            builder.memory_provider(Box::new(provider));
            builder
        }
    }
}

include!(concat!(env!("CRANELIFT_JIT"), "/tests/basic.rs"));
