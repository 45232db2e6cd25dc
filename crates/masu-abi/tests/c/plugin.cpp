// A plug-in written in C++, for a host in C that has no C++ runtime of its own.
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <vector>

// Compilers may drop an allocation that nobody looks at.
static void *volatile held_by_nobody;

// 1 if `new` threw bad_alloc and it was caught here.
extern "C" int plugin_catches_bad_alloc()
{
    volatile std::size_t impossible = PTRDIFF_MAX;
    try {
        held_by_nobody = ::operator new(impossible);
    } catch (const std::bad_alloc &) {
        return ::operator new(impossible, std::nothrow) == nullptr;
    }
    return 0;
}

static std::vector<std::string> *held;

// Allocates what `plugin_free` frees.
extern "C" void plugin_allocate()
{
    held = new std::vector<std::string>(1000, std::string(100, 'p'));
}

extern "C" void plugin_free()
{
    delete held;
}
