//! Functions that come and go: memory, mappings and times of `cranelift-jit` by its provider.
//!
//! `flat KIND LIVE ROUNDS`: compiles a function a round, calls it, and frees the oldest while more than LIVE are there, as
//! far as the kind can. `system` and `reserved` are cranelift-jit's own providers, `system-each` the first with a module for each
//! function, `arena` masu's, and `objects` functions as object files of `cranelift-object`, loaded by the arena.

use std::collections::VecDeque;
use std::error::Error;
use std::time::{Duration, Instant};

use cranelift_codegen::ir::{AbiParam, InstBuilder, Signature, UserFuncName, types};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_module::{FuncId, Linkage, Module, default_libcall_names};
use cranelift_object::{ObjectBuilder, ObjectModule};
use jit::{ArenaMemoryProvider, JITBuilder, JITMemoryProvider, JITModule, SystemMemoryProvider};
use masu_code::{Arena, Handle, Options, Source};
use masu_code_cranelift::{Blocks, Provider};

type Body = extern "C" fn(i64) -> i64;
type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let mut words = std::env::args().skip(1);
    let usage = "flat system|reserved|system-each|arena|objects LIVE ROUNDS";
    let (Some(kind), Some(live), Some(rounds)) = (words.next(), words.next(), words.next()) else {
        return Err(usage.into());
    };
    let (live, rounds): (usize, usize) = (live.parse()?, rounds.parse()?);
    let arena = Arena::open(Options::default())?;
    let mut functions = match &*kind {
        "system" => one(Box::new(SystemMemoryProvider::new()), None)?,
        "reserved" => one(Box::new(ArenaMemoryProvider::new_with_size(256 << 20)?), None)?,
        "system-each" => Functions::Each(VecDeque::new()),
        "arena" => {
            let (provider, blocks) = Provider::new(&arena);
            one(Box::new(provider), Some(blocks))?
        }
        "objects" => Functions::Objects(arena.clone(), VecDeque::new()),
        _ => return Err(usage.into()),
    };
    println!(
        "{kind:>11}: functions  mappings  KiB more  µs to compile  … to finalize  … to free  ns a call"
    );
    let start = resident()?;
    let (mut compile, mut finalize, mut free) = (Vec::new(), Vec::new(), Vec::new());
    let mut bodies = VecDeque::new();
    for round in 0..rounds {
        let begun = Instant::now();
        let (body, sealed) = functions.add(round)?;
        compile.push(begun.elapsed().saturating_sub(sealed));
        finalize.push(sealed);
        assert_eq!(body(2), 2 * round as i64);
        bodies.push_back(body);
        if round >= live {
            bodies.pop_front();
            free.extend(functions.remove()?);
        }
        if (round + 1) % (rounds / 4).max(1) == 0 {
            let (maps, more) = (mappings()?, (resident()?.saturating_sub(start)) / 1024);
            let [made, ready, gone] = [&mut compile, &mut finalize, &mut free].map(median);
            let call = ns_a_call(bodies.make_contiguous());
            println!(
                "{:>22} {maps:>9} {more:>9} {made:>14} {ready:>14} {gone:>10} {call:>10.2}",
                round + 1
            );
        }
    }
    Ok(())
}

/// The least of five passes over the functions, each called a few hundred times in turn.
fn ns_a_call(bodies: &[Body]) -> f64 {
    let turns = 2_000_000 / bodies.len().max(1) + 1;
    let pass = || {
        let start = Instant::now();
        let calls = (0..turns).flat_map(|_| bodies);
        std::hint::black_box(calls.fold(1, |sum: i64, body| sum ^ body(sum)));
        start.elapsed().as_nanos() as f64 / (turns * bodies.len()) as f64
    };
    (0..5).map(|_| pass()).fold(f64::INFINITY, f64::min)
}

enum Functions {
    One(Box<JITModule>, Option<Blocks>, VecDeque<FuncId>),
    Each(VecDeque<JITModule>),
    Objects(Arena, VecDeque<Handle>),
}

fn one(memory: Box<dyn JITMemoryProvider + Send>, blocks: Option<Blocks>) -> Outcome<Functions> {
    Ok(Functions::One(Box::new(module(memory)?), blocks, VecDeque::new()))
}

fn module(memory: Box<dyn JITMemoryProvider + Send>) -> Outcome<JITModule> {
    let mut builder = JITBuilder::new(default_libcall_names())?;
    builder.memory_provider(memory);
    Ok(JITModule::new(builder))
}

impl Functions {
    /// Compiles a function. Returns the function, and the time from machine code to executable memory.
    fn add(&mut self, number: usize) -> Outcome<(Body, Duration)> {
        let body = |address: *const u8| -> Body {
            // SAFETY: That is the type of every function here.
            unsafe { std::mem::transmute(address) }
        };
        let (address, time) = match self {
            Functions::One(module, _, live) => {
                let function = define(&mut **module, None, number)?;
                let start = Instant::now();
                module.finalize_definitions()?;
                live.push_back(function);
                (module.get_finalized_function(function), start.elapsed())
            }
            Functions::Each(live) => {
                let mut module = module(Box::new(SystemMemoryProvider::new()))?;
                let function = define(&mut module, None, number)?;
                let start = Instant::now();
                module.finalize_definitions()?;
                let made = (module.get_finalized_function(function), start.elapsed());
                live.push_back(module);
                made
            }
            Functions::Objects(arena, live) => {
                let mut flags = settings::builder();
                flags.set("is_pic", "true")?;
                let isa = cranelift_native::builder()?.finish(settings::Flags::new(flags))?;
                let builder = ObjectBuilder::new(isa, "function", default_libcall_names())?;
                let mut module = ObjectModule::new(builder);
                define(&mut module, Some("function"), number)?;
                let start = Instant::now();
                let object = module.finish().emit()?;
                // SAFETY: The object has no initializers.
                let handle = unsafe { arena.load(Source::new("function", object).private())? };
                live.push_back(handle);
                (arena.symbol(handle, "function")?.cast(), start.elapsed())
            }
        };
        Ok((body(address), time))
    }

    /// Frees the oldest function, where that can be done; returns the time that this took.
    fn remove(&mut self) -> Outcome<Option<Duration>> {
        let start = Instant::now();
        match self {
            Functions::One(module, Some(blocks), live) => {
                let oldest = live.pop_front().ok_or("none is live")?;
                // SAFETY: Nothing runs the function or refers to it.
                unsafe { blocks.free(module.get_finalized_function(oldest))? };
            }
            Functions::One(..) => return Ok(None),
            // SAFETY: As above.
            Functions::Each(live) => unsafe {
                live.pop_front().ok_or("none is live")?.free_memory()
            },
            Functions::Objects(arena, live) => {
                arena.unload(live.pop_front().ok_or("none is live")?)?;
            }
        }
        Ok(Some(start.elapsed()))
    }
}

/// Defines a function that multiplies by `number`.
fn define(module: &mut dyn Module, name: Option<&str>, number: usize) -> Outcome<FuncId> {
    let mut context = module.make_context();
    let integer = || AbiParam::new(types::I64);
    let convention = module.target_config().default_call_conv;
    let mut signature = Signature::new(convention);
    signature.params.push(integer());
    signature.returns.push(integer());
    let function = match name {
        Some(name) => module.declare_function(name, Linkage::Export, &signature)?,
        None => module.declare_anonymous_function(&signature)?,
    };
    context.func.signature = signature;
    context.func.name = UserFuncName::user(0, function.as_u32());
    let mut memory = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(&mut context.func, &mut memory);
    let block = builder.create_block();
    builder.append_block_params_for_function_params(block);
    builder.switch_to_block(block);
    let factor = builder.ins().iconst(types::I64, i64::try_from(number)?);
    let argument = builder.block_params(block)[0];
    let product = builder.ins().imul(argument, factor);
    builder.ins().return_(&[product]);
    builder.seal_all_blocks();
    builder.finalize(module.target_config());
    module.define_function(function, &mut context)?;
    Ok(function)
}

fn median(times: &mut Vec<Duration>) -> String {
    times.sort_unstable();
    let median =
        times.get(times.len() / 2).map(|time| format!("{:.1}", time.as_nanos() as f64 / 1e3));
    times.clear();
    median.unwrap_or_else(|| "-".to_owned())
}

fn mappings() -> Outcome<usize> {
    Ok(std::fs::read_to_string("/proc/self/maps")?.lines().count())
}

fn resident() -> Outcome<usize> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<usize>()? * 1024)
}
