//! A module of cranelift's in the arena: its functions run, are freed one by one, and leave nothing.
//!
//! Relies on `/proc/self/maps` for the number of mappings.

use cranelift_codegen::ir::{AbiParam, InstBuilder, Signature, UserFuncName, types};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_module::{DataDescription, FuncId, Linkage, Module, default_libcall_names};
use jit::{JITBuilder, JITModule};
use masu_code::{Arena, Options, Writing};
use masu_code_cranelift::{Blocks, Provider};

type Body = extern "C" fn(i64) -> i64;

extern "C" fn host(x: i64) -> i64 {
    x + 1
}

fn module(arena: &Arena) -> (JITModule, Blocks) {
    let mut builder = JITBuilder::new(default_libcall_names()).expect("the CPU is known");
    builder.symbol("host", host as *const u8);
    let (provider, blocks) = Provider::new(arena);
    builder.memory_provider(Box::new(provider));
    (JITModule::new(builder), blocks)
}

fn signature(module: &JITModule) -> Signature {
    let mut signature = module.make_signature();
    signature.params.push(AbiParam::new(types::I64));
    signature.returns.push(AbiParam::new(types::I64));
    signature
}

/// Defines `callee(x) * factor`.
fn define(module: &mut JITModule, callee: FuncId, factor: i64) -> FuncId {
    let mut context = module.make_context();
    context.func.signature = signature(module);
    let function = module.declare_anonymous_function(&context.func.signature).expect("declared");
    context.func.name = UserFuncName::user(0, function.as_u32());
    let mut memory = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(&mut context.func, &mut memory);
    let block = builder.create_block();
    builder.append_block_params_for_function_params(block);
    builder.switch_to_block(block);
    let callee = module.declare_func_in_func(callee, builder.func);
    let argument = builder.block_params(block)[0];
    let call = builder.ins().call(callee, &[argument]);
    let value = builder.inst_results(call)[0];
    let factor = builder.ins().iconst(types::I64, factor);
    let product = builder.ins().imul(value, factor);
    builder.ins().return_(&[product]);
    builder.seal_all_blocks();
    builder.finalize(module.target_config());
    module.define_function(function, &mut context).expect("compiled");
    function
}

fn body(module: &JITModule, function: FuncId) -> Body {
    // SAFETY: That is the type of every function here.
    unsafe { std::mem::transmute(module.get_finalized_function(function)) }
}

/// The number of mappings in the arena's range.
fn mappings(arena: &Arena) -> usize {
    let report = arena.report();
    let end = report.base + report.text.size + report.sealed.size + report.data.size;
    let maps = std::fs::read_to_string("/proc/self/maps").expect("maps can be read");
    let starts = maps.lines().filter_map(|line| line.split_once('-')).map(|(start, _)| start);
    let starts = starts.filter_map(|start| usize::from_str_radix(start, 16).ok());
    starts.filter(|start| (report.base..end).contains(start)).count()
}

fn each_way(test: impl Fn(&Arena)) {
    for writing in [Writing::Dual, Writing::Batches] {
        let options = Options { writing, ..Options::default() };
        test(&Arena::open(options).expect("an arena opens"));
    }
}

#[test]
fn functions_are_freed_one_by_one_while_others_run() {
    each_way(|arena| {
        let (mut module, blocks) = module(arena);
        let signature = signature(&module);
        let host = module.declare_function("host", Linkage::Import, &signature).expect("declared");
        let empty = arena.report();
        let mut live = std::collections::VecDeque::new();
        let mut seen = 0;
        for round in 0..600_i64 {
            // Two functions; the second calls the first.
            let first = define(&mut module, host, round);
            let second = define(&mut module, first, 2);
            module.finalize_definitions().expect("sealed");
            assert_eq!(body(&module, second)(20), 42 * round);
            live.push_back([second, first]);
            if live.len() > 50 {
                for function in live.pop_front().expect("there are some") {
                    // SAFETY: No thread runs the function, and its callers are freed.
                    unsafe { blocks.free(module.get_finalized_function(function)) }
                        .expect("it was there");
                }
            }
            if round == 100 {
                seen = mappings(arena);
            }
        }
        // A page for each live batch, and no more mappings than at the beginning.
        let page = 4096.max(empty.text.size / (64 << 10));
        assert!(arena.report().text.used - empty.text.used <= 50 * 2 * page);
        assert!(mappings(arena) <= seen + 1, "{seen} mappings, then {}", mappings(arena));
        for [second, first] in live {
            assert_eq!(body(&module, second)(1), body(&module, first)(1) * 2);
        }
        // SAFETY: No function of the module is used any more.
        unsafe { module.free_memory() };
        assert_eq!((arena.report().text.used, arena.report().objects), (empty.text.used, 0));
    });
}

#[test]
fn an_entry_replaces_a_function_of_a_module() {
    each_way(|arena| {
        let (mut module, blocks) = module(arena);
        let signature = signature(&module);
        let host = module.declare_function("host", Linkage::Import, &signature).expect("declared");
        let old = define(&mut module, host, 2);
        module.finalize_definitions().expect("sealed");
        let old = module.get_finalized_function(old);
        let handle = blocks.handle(old).expect("it is there");
        let entry = arena.entry("method", handle, "").expect("the name is free");
        let reader = arena.reader();
        // SAFETY: That is the entry's type.
        let running = unsafe { entry.get::<Body>() };
        let new = define(&mut module, host, 3);
        module.finalize_definitions().expect("sealed");
        let new = blocks.handle(module.get_finalized_function(new)).expect("it is there");
        entry.replace(new, "").expect("it is there");
        // SAFETY: This thread is a reader, and nothing else refers to the function.
        unsafe { blocks.free(old) }.expect("it was there");
        // SAFETY: That is the entry's type.
        let replaced = unsafe { entry.get::<Body>() };
        assert_eq!((running(1), replaced(1), arena.waiting()), (4, 6, 1));
        reader.quiescent();
        assert_eq!((arena.collect(), arena.waiting()), (1, 0));
        // SAFETY: As above.
        unsafe { blocks.free(old) }.expect_err("it is gone");
    });
}

#[test]
fn data_is_where_it_belongs() {
    each_way(|arena| {
        let (mut module, blocks) = module(arena);
        let mut define = |name, writable| {
            let data =
                module.declare_data(name, Linkage::Local, writable, false).expect("declared");
            let mut contents = DataDescription::new();
            contents.define(Box::new([5; 100]));
            module.define_data(data, &contents).expect("defined");
            data
        };
        let (cell, table) = (define("cell", true), define("table", false));
        module.finalize_definitions().expect("sealed");
        let (cell, _) = module.get_finalized_data(cell);
        let (table, size) = module.get_finalized_data(table);
        // SAFETY: The cell is writable, and both have their size.
        unsafe {
            cell.cast_mut().write(6);
            assert_eq!(std::slice::from_raw_parts(table, size), [5; 100]);
            blocks.free(cell).expect("it was there");
            blocks.free(table).expect("it was there");
        }
        assert_eq!((arena.report().objects, arena.report().data.used), (0, 0));
    });
}
