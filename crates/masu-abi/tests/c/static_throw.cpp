// A static program in C++ over libmasu.a: what cannot be had is thrown and caught.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <new>

static void *volatile looked_at;
static volatile std::size_t impossible = PTRDIFF_MAX;

extern "C" void malloc_stats();

int main()
{
    looked_at = new char[1000];
    delete[] static_cast<char *>(looked_at);
    try {
        looked_at = ::operator new(impossible);
    } catch (const std::bad_alloc &) {
        // Says who serves.
        malloc_stats();
        return ::operator new(impossible, std::nothrow) ? 2 : 0;
    }
    return 1;
}
