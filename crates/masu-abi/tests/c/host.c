/* A program in C that loads the C++ plug-in named by its argument, in a scope of its own, as
 * interpreters do. Its own `operator new` cannot throw: nobody could catch. */
#include "served.h"

void *_Znwm(size_t size);
void *_ZnwmRKSt9nothrow_t(size_t size, const void *nothrow);
void _ZdlPv(void *block);

int main(int count, char **arguments)
{
    served_by_masu();
    if (count == 1) {
        /* No runtime at all: null where null is allowed, else a last message. */
        _ZdlPv(_Znwm(100));
        CHECK(_ZnwmRKSt9nothrow_t((size_t)-1 / 2, "") == NULL);
        _Znwm((size_t)-1 / 2);
        return 0;
    }
    for (int round = 0; round < 20; round++) {
        void *plugin = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
        if (!plugin)
            fprintf(stderr, "%s\n", dlerror());
        CHECK(plugin);
        int (*catches)(void) = (int (*)(void))dlsym(plugin, "plugin_catches_bad_alloc");
        void (*allocate)(void) = (void (*)(void))dlsym(plugin, "plugin_allocate");
        void (*release)(void) = (void (*)(void))dlsym(plugin, "plugin_free");
        CHECK(catches && allocate && release);
        CHECK(catches());
        allocate();
        release();
        CHECK(dlclose(plugin) == 0);
    }
    return 0;
}
