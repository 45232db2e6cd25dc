# For the sources that a package lists without saying how to build a library of them.
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
