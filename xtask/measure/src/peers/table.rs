//! The peers: where the sources of each come from and how its authors build it for preloading.
//!
//! It relies on packages of cargo's registry that carry a malloc's C or C++ sources whole. Versions are
//! exact, so that a record made today and one made next year compare the same code. The hard part is to be
//! fair: each is built as its own build scripts or documentation advise for a release, with the compiler they
//! advise, and docs/choosing.md says where that is written.

#[derive(Debug, Clone, Copy)]
pub(super) struct Peer {
    /// What the lab's catalogue calls it.
    pub(super) name: &'static str,
    pub(super) package: &'static str,
    /// The package's exact version, up to any `+`.
    pub(super) package_version: &'static str,
    pub(super) version: &'static str,
    /// A file of the package and what it must say for `version` to be true.
    pub(super) witness: (&'static str, &'static str),
    /// The library's name in `target/peers`, from which the lab knows name and version. Those that pay for safety are
    /// in the folder [`HARDENED`] of it: who compares speed does not want them in every table.
    pub(super) file: &'static str,
    /// A file of the package whose quoted paths of C++ sources are what has to be compiled.
    pub(super) listing: Option<&'static str>,
    /// Programs to run, in order, in the build folder; words are separated by spaces. `{source}` is the
    /// package's folder, `{jobs}` the number of compilers to run at once.
    pub(super) steps: &'static [&'static str],
    /// The library that the steps leave in the build folder.
    pub(super) product: &'static str,
}

/// The folder of hardened builds, below `target/peers`.
pub(super) const HARDENED: &str = "hardened";

pub(super) static PEERS: [Peer; 8] = [
    Peer {
        name: "mimalloc3",
        package: "libmimalloc-sys2",
        package_version: "0.1.65",
        version: "3.6.0",
        witness: ("c_src/mimalloc3/include/mimalloc.h", "#define MI_MALLOC_VERSION 30600 "),
        file: "libmimalloc.so.3.6.0",
        listing: None,
        steps: &[
            "cmake -S {source}/c_src/mimalloc3 -B . -DCMAKE_BUILD_TYPE=Release -DMI_BUILD_STATIC=OFF \
             -DMI_BUILD_OBJECT=OFF -DMI_BUILD_TESTS=OFF",
            "cmake --build . --parallel {jobs}",
        ],
        product: "libmimalloc.so.3.6",
    },
    Peer {
        name: "mimalloc2",
        package: "libmimalloc-sys2",
        package_version: "0.1.65",
        version: "2.5.2",
        witness: ("c_src/mimalloc/include/mimalloc.h", "#define MI_MALLOC_VERSION 20502 "),
        file: "libmimalloc.so.2.5.2",
        listing: None,
        steps: &[
            "cmake -S {source}/c_src/mimalloc -B . -DCMAKE_BUILD_TYPE=Release -DMI_BUILD_STATIC=OFF \
             -DMI_BUILD_OBJECT=OFF -DMI_BUILD_TESTS=OFF",
            "cmake --build . --parallel {jobs}",
        ],
        product: "libmimalloc.so.2.5",
    },
    Peer {
        name: "jemalloc",
        package: "tikv-jemalloc-sys",
        package_version: "0.7.1",
        version: "5.3.1",
        witness: ("jemalloc/ChangeLog", "\n* 5.3.1 ("),
        file: "libjemalloc.so.5.3.1",
        listing: None,
        steps: &[
            "cp -r {source}/jemalloc/. .",
            // The package carries the generated script, so that autoconf is not needed.
            "cp {source}/configure/configure .",
            "sh ./configure --enable-doc=no --enable-static=no \
             --with-version=5.3.1-0-g81034ce1f1373e37dc865038e1bc8eeecf559ce8",
            "make -j{jobs} build_lib_shared",
        ],
        product: "lib/libjemalloc.so.2",
    },
    Peer {
        name: "snmalloc",
        package: "snmalloc-sys",
        package_version: "0.7.6",
        version: "0.7.6",
        witness: ("Cargo.toml", "version = \"0.7.6\""),
        file: "libsnmallocshim.so.0.7.6",
        listing: None,
        steps: &[
            "cmake -S {source}/upstream -B . -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=clang++ \
             -DCMAKE_C_COMPILER=clang -DSNMALLOC_BUILD_TESTING=OFF",
            "cmake --build . --parallel {jobs} --target snmallocshim",
        ],
        product: "libsnmallocshim.so",
    },
    Peer {
        name: "rpmalloc",
        package: "rpmalloc-sys",
        package_version: "0.2.3",
        // What its authors had 1.4.3 and some commits later, on the way to 1.4.4.
        version: "1.4.3+b097fd0",
        witness: ("Cargo.toml", "version = \"0.2.3+b097fd0\""),
        file: "librpmallocwrap.so.1.4.3+b097fd0",
        listing: None,
        // The flags of its own build script for a release of the preloadable library. Compiled and linked
        // apart, as there: linked with -ffast-math, a library changes the arithmetic of its whole program.
        steps: &[
            "clang -std=c11 -m64 -O3 -funroll-loops -fPIC -fvisibility=hidden -fno-stack-protector \
             -fomit-frame-pointer -funit-at-a-time -fstrict-aliasing -fno-math-errno -ffinite-math-only \
             -funsafe-math-optimizations -fno-trapping-math -ffast-math -D_GNU_SOURCE=1 \
             -DRPMALLOC_COMPILE=1 -DBUILD_DYNAMIC_LINK=1 -DBUILD_RELEASE=1 -DENABLE_PRELOAD=1 \
             -DENABLE_OVERRIDE=1 -c {source}/rpmalloc/rpmalloc/rpmalloc.c -o rpmalloc.o",
            "clang -m64 -shared -pthread -fomit-frame-pointer -o librpmallocwrap.so rpmalloc.o -lm -ldl",
        ],
        product: "librpmallocwrap.so",
    },
    Peer {
        name: "tcmalloc-google",
        package: "libtcmalloc-sys",
        package_version: "0.1.14",
        // It has no releases: this is the day on which the package took its sources.
        version: "2025.06.16",
        witness: ("CHANGELOG.md", "libtcmalloc-sys-v0.1.14) - 2025-06-16"),
        file: "libtcmalloc_google.so.2025.06.16",
        listing: Some("build.rs"),
        steps: &[
            // What bazel passes for `-c opt`, with the page size of its plain `tcmalloc` target. clang is what
            // its authors build with; gcc 12 loses the TLS model that the sources ask for and puts a call into
            // every malloc, so the model is said once more.
            "cmake -S . -B . -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_CXX_STANDARD=17 -DCMAKE_BUILD_TYPE=None \
             -DCMAKE_SHARED_LINKER_FLAGS=-Wl,--gc-sections,--no-undefined \
             -DDEFINITIONS=TCMALLOC_INTERNAL_8K_PAGES;NOMINMAX;NDEBUG \
             -DOPTIONS=-O2;-g0;-w;-ftls-model=initial-exec;-fno-omit-frame-pointer;-fstack-protector;\
             -ffunction-sections;-fdata-sections",
            "cmake --build . --parallel {jobs}",
        ],
        product: "libtcmalloc_google.so",
    },
    Peer {
        name: "mimalloc-secure",
        package: "libmimalloc-sys2",
        package_version: "0.1.65",
        version: "3.6.0",
        witness: ("c_src/mimalloc3/include/mimalloc.h", "#define MI_MALLOC_VERSION 30600 "),
        file: "hardened/libmimalloc-secure.so.3.6.0",
        listing: None,
        steps: &[
            "cmake -S {source}/c_src/mimalloc3 -B . -DCMAKE_BUILD_TYPE=Release -DMI_SECURE=ON -DMI_BUILD_STATIC=OFF \
             -DMI_BUILD_OBJECT=OFF -DMI_BUILD_TESTS=OFF",
            "cmake --build . --parallel {jobs}",
        ],
        product: "libmimalloc-secure.so.3.6",
    },
    Peer {
        name: "hardened_malloc",
        package: "hardened-malloc-sys",
        package_version: "16.0.2026071503",
        version: "16.0.2026071503",
        witness: ("Cargo.toml", "version = \"16.0.2026071503\""),
        file: "hardened/libhardened_malloc.so.16.0.2026071503",
        listing: None,
        // The flags and the defaults of its own makefile, which the package leaves out, without -march=native. Its
        // sources are C23, for which Debian's usual compilers are too old.
        steps: &[
            "clang-19 -std=c2x -O3 -flto -fPIC -fvisibility=hidden -fno-plt -fstack-clash-protection -fcf-protection \
             -fstack-protector-strong -D_GNU_SOURCE -DCONFIG_SEAL_METADATA=false -DZERO_ON_FREE=true -DWRITE_AFTER_FREE_CHECK=true \
             -DSLOT_RANDOMIZE=true -DSLAB_CANARY=true -DSLAB_QUARANTINE_RANDOM_LENGTH=1 \
             -DSLAB_QUARANTINE_QUEUE_LENGTH=1 -DCONFIG_EXTENDED_SIZE_CLASSES=true \
             -DCONFIG_LARGE_SIZE_CLASSES=true -DGUARD_SLABS_INTERVAL=1 -DGUARD_SIZE_DIVISOR=2 \
             -DREGION_QUARANTINE_RANDOM_LENGTH=256 -DREGION_QUARANTINE_QUEUE_LENGTH=1024 \
             -DREGION_QUARANTINE_SKIP_THRESHOLD=33554432 -DFREE_SLABS_QUARANTINE_RANDOM_LENGTH=32 \
             -DCONFIG_CLASS_REGION_SIZE=34359738368 -DN_ARENA=4 -DCONFIG_STATS=false -DCONFIG_SELF_INIT=true \
             -DCONFIG_LABEL_MEMORY=false -I{source}/vendor/hardened-malloc \
             -I{source}/vendor/hardened-malloc/include -I{source}/vendor/hardened-malloc/third_party -c {source}/vendor/hardened-malloc/chacha.c \
             {source}/vendor/hardened-malloc/h_malloc.c {source}/vendor/hardened-malloc/memory.c \
             {source}/vendor/hardened-malloc/pages.c {source}/vendor/hardened-malloc/random.c \
             {source}/vendor/hardened-malloc/util.c",
            "clang++-19 -std=c++17 -fsized-deallocation -O3 -flto -fPIC -fvisibility=hidden -fno-plt \
             -fstack-clash-protection -fcf-protection -fstack-protector-strong -D_GNU_SOURCE -DCONFIG_SEAL_METADATA=false -DZERO_ON_FREE=true -DWRITE_AFTER_FREE_CHECK=true \
             -DSLOT_RANDOMIZE=true -DSLAB_CANARY=true -DSLAB_QUARANTINE_RANDOM_LENGTH=1 \
             -DSLAB_QUARANTINE_QUEUE_LENGTH=1 -DCONFIG_EXTENDED_SIZE_CLASSES=true \
             -DCONFIG_LARGE_SIZE_CLASSES=true -DGUARD_SLABS_INTERVAL=1 -DGUARD_SIZE_DIVISOR=2 \
             -DREGION_QUARANTINE_RANDOM_LENGTH=256 -DREGION_QUARANTINE_QUEUE_LENGTH=1024 \
             -DREGION_QUARANTINE_SKIP_THRESHOLD=33554432 -DFREE_SLABS_QUARANTINE_RANDOM_LENGTH=32 \
             -DCONFIG_CLASS_REGION_SIZE=34359738368 -DN_ARENA=4 -DCONFIG_STATS=false -DCONFIG_SELF_INIT=true \
             -DCONFIG_LABEL_MEMORY=false -I{source}/vendor/hardened-malloc \
             -I{source}/vendor/hardened-malloc/include -I{source}/vendor/hardened-malloc/third_party \
             -c {source}/vendor/hardened-malloc/new.cc",
            "clang++-19 -shared -O3 -flto -fuse-ld=lld-19 -Wl,-O1,--as-needed,-z,defs,-z,relro,-z,now,-z,nodlopen,-z,text \
             -o libhardened_malloc.so chacha.o h_malloc.o memory.o pages.o random.o util.o new.o -lpthread",
        ],
        product: "libhardened_malloc.so",
    },
];

/// CMake's file for the sources that a package lists without telling how to build a library of them.
pub(super) const CMAKE_OF_LISTING: &str = "\
cmake_minimum_required(VERSION 3.16)
project(tcmalloc_google CXX ASM)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
include_directories(SYSTEM {source}/c_src/abseil-cpp {source}/c_src/tcmalloc)
add_compile_definitions(${DEFINITIONS})
add_compile_options(${OPTIONS})
add_library(abseil STATIC
{abseil})
add_library(tcmalloc_google SHARED
{malloc})
target_link_libraries(tcmalloc_google PRIVATE abseil pthread)
";
