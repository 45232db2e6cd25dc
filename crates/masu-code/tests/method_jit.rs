//! A small method JIT: it writes C, compiles it with gcc in a worker, loads the object, swaps the
//! method's entry and unloads the old code, while other threads call the methods throughout.
//!
//! Short in CI. `MASU_SOAK=1` runs two minutes each way of writing code, with thousands of methods, after all were
//! compiled; `MASU_JIT_SECONDS=N` runs N seconds with few methods, for `cargo xtask sanitize`. It checks that every
//! answer belongs to some version of the called method, that memory stays bounded, and that all unloaded code is freed
//! in the end. Latencies are printed, not judged.

mod fixture;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use fixture::{CC, WAYS, Workshop, options};
use masu_code::{Arena, Entry, Handle, Method, Options, Source, evict};

/// The result of a method: the interpreter's answer, the same in every version.
fn answer(method: usize, x: i64) -> i64 {
    let mut value = x;
    for step in 0..8 {
        value = value.wrapping_mul(3 + (method % 7) as i64 + step) ^ (value >> 5) ^ method as i64;
    }
    value
}

/// C of one version of several methods at once: the same function, with another order of work.
fn text(methods: &[usize], version: u64) -> String {
    let mut text = String::new();
    for method in methods {
        let unrolled = version % 2 == 1;
        text.push_str(&format!("long m{method}(long value) {{\n"));
        if unrolled {
            for step in 0..8 {
                let factor = 3 + method % 7 + step;
                text.push_str(&format!(
                    "  value = (long)((unsigned long)value * {factor}) ^ (value >> 5) ^ {method};\n"
                ));
            }
        } else {
            text.push_str(&format!(
                "  for (long step = 0; step < 8; step++)\n    value = (long)((unsigned long)value * ({} + step)) \
                 ^ (value >> 5) ^ {method};\n",
                3 + method % 7
            ));
        }
        text.push_str("  return value;\n}\n");
    }
    text
}

/// Methods that one compilation holds: a compiler is started once for all of them.
const TOGETHER: usize = 16;

extern "C" fn not_compiled(_: i64) -> i64 {
    i64::MIN
}

struct Jit {
    arena: Arena,
    entries: Vec<Entry>,
    /// The object of each group of methods.
    objects: Mutex<Vec<Option<Handle>>>,
    calls: Vec<AtomicU64>,
}

impl Jit {
    fn open(methods: usize, options: Options) -> Jit {
        let arena = Arena::open(options).unwrap();
        let interpreter = not_compiled as *const () as *const std::ffi::c_void;
        let entry = |method| arena.entry_at(&format!("method{method}"), interpreter).unwrap();
        let entries = (0..methods).map(entry).collect();
        let groups = methods.div_ceil(TOGETHER);
        let calls = (0..groups).map(|_| AtomicU64::new(0)).collect();
        Jit { arena, entries, objects: Mutex::new(vec![None; groups]), calls }
    }

    fn group(&self, group: usize) -> Vec<usize> {
        (group * TOGETHER..((group + 1) * TOGETHER).min(self.entries.len())).collect()
    }

    /// Puts a new version of a group in place; returns the time for loading and swapping.
    fn install(&self, group: usize, source: &Source) -> Duration {
        let start = Instant::now();
        // SAFETY: The methods have no initializers.
        let object = unsafe { self.arena.load(source) }.unwrap_or_else(|error| panic!("{error}"));
        for method in self.group(group) {
            self.entries[method].replace(object, &format!("m{method}")).unwrap();
        }
        let before = self.objects.lock().unwrap()[group].replace(object);
        if let Some(before) = before {
            self.arena.unload(before).unwrap();
        }
        start.elapsed()
    }

    /// Waits until no more versions wait for the callers than there are groups: otherwise memory would grow without
    /// bound while a thread gets no CPU for long.
    fn keep_pace(&self) {
        while self.arena.waiting() > self.calls.len() {
            std::thread::yield_now();
            self.arena.collect();
        }
    }

    /// Unloads the groups that the policy names, so that at most `keep` groups stay compiled.
    fn evict(&self, keep: u64) -> usize {
        let mut objects = self.objects.lock().unwrap();
        let compiled: Vec<Method<usize>> = (0..objects.len())
            .filter(|&group| objects[group].is_some())
            .map(|group| Method {
                key: group,
                collected: group % 11 == 3,
                running: false,
                calls: self.calls[group].load(Ordering::Relaxed),
                size: 1,
            })
            .collect();
        let gone: Vec<usize> = evict(&compiled, keep).into_iter().copied().collect();
        let interpreter = not_compiled as *const () as *const std::ffi::c_void;
        for &group in &gone {
            for method in self.group(group) {
                self.entries[method].replace_at(interpreter).unwrap();
            }
            self.arena.unload(objects[group].take().unwrap()).unwrap();
        }
        gone.len()
    }

    fn call_until(&self, stop: &AtomicBool, seed: usize) -> u64 {
        let reader = self.arena.reader();
        let (mut calls, mut method) = (0, seed);
        while !stop.load(Ordering::Relaxed) {
            for _ in 0..200 {
                method = (method * 7 + 3) % self.entries.len();
                // SAFETY: This thread has a reader.
                let function = unsafe { self.entries[method].get::<extern "C" fn(i64) -> i64>() };
                let (x, expected) = (calls as i64, answer(method, calls as i64));
                let said = function(x);
                assert!(said == expected || said == i64::MIN, "m{method}({x}) = {said}");
                self.calls[method / TOGETHER].fetch_add(1, Ordering::Relaxed);
                calls += 1;
            }
            reader.quiescent();
        }
        calls
    }
}

#[test]
fn methods_are_compiled_swapped_and_unloaded_while_threads_call_them() {
    let soak = std::env::var_os("MASU_SOAK").map(|_| 120);
    let seconds = std::env::var("MASU_JIT_SECONDS").ok();
    let seconds = seconds.map(|text| text.parse().expect("MASU_JIT_SECONDS is a number")).or(soak);
    let methods = if soak.is_some() { 4000 } else { 192 };
    let rounds = if seconds.is_some() { usize::MAX } else { 6 };
    for &writing in WAYS {
        let jit = Jit::open(methods, Options { writing, size: 32 << 20, ..options() });
        let groups = methods.div_ceil(TOGETHER);
        let stop = AtomicBool::new(false);
        let workshop = Workshop::open();
        let (mut most, mut latencies, mut evicted) = (0, Vec::new(), 0);
        let (started, mut first) = (Instant::now(), None);
        std::thread::scope(|scope| {
            let callers: Vec<_> = (0..2)
                .map(|seed| {
                    scope.spawn({
                        let (jit, stop) = (&jit, &stop);
                        move || jit.call_until(stop, seed)
                    })
                })
                .collect();
            let (send, compiled) = mpsc::sync_channel::<(usize, Source)>(4);
            let worker = scope.spawn({
                let (jit, workshop) = (&jit, &workshop);
                move || {
                    // Two versions of each group are compiled; afterwards the same versions are loaded again, as from a
                    // cache.
                    let mut cache: Vec<Source> = Vec::new();
                    let mut end = None;
                    for round in 0..rounds {
                        if round == 2 {
                            let from_now = |seconds| Instant::now() + Duration::from_secs(seconds);
                            end = seconds.map(from_now);
                        }
                        for group in 0..groups {
                            let version = round % 2;
                            if round < 2 {
                                let name = format!("g{group}v{version}.c");
                                let text = text(&jit.group(group), version as u64);
                                cache.push(
                                    workshop.source(CC, &name, &text, &["-O1", "-fPIC"]).private(),
                                );
                            }
                            let source = cache[version * groups + group].clone();
                            let is_over = end.is_some_and(|end| Instant::now() > end);
                            if send.send((group, source)).is_err() || is_over {
                                return;
                            }
                        }
                    }
                }
            });
            for (count, (group, source)) in compiled.iter().enumerate() {
                jit.keep_pace();
                latencies.push(jit.install(group, &source));
                first.get_or_insert(started.elapsed());
                if count % groups == groups - 1 {
                    evicted += jit.evict(groups as u64 * 3 / 4);
                }
                let report = jit.arena.report();
                most = most.max(report.text.used + report.text.hole_bytes);
            }
            worker.join().unwrap();
            stop.store(true, Ordering::Relaxed);
            let calls: u64 = callers.into_iter().map(|caller| caller.join().unwrap()).sum();
            assert!(calls > 0);
            latencies.sort_unstable();
            let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize];
            println!(
                "{writing:?}: {methods} methods, {} loads, {evicted} groups evicted, {calls} calls; first code after \
                 {first:?}; load and swap of {TOGETHER}: median {:?}, 99 % {:?}, longest {:?}; text at most {most} bytes",
                latencies.len(),
                at(0.5),
                at(0.99),
                at(1.0)
            );
        });
        jit.arena.collect();
        assert_eq!(jit.arena.waiting(), 0);
        // No more than three versions of every group were ever loaded at once, each in whole OS pages at worst.
        assert!(most < groups * 3 * 8192, "{most} bytes of text for {groups} groups");
        jit.evict(0);
        jit.arena.collect();
        assert_eq!((jit.arena.report().objects, jit.arena.report().text.used), (0, 0));
    }
}
