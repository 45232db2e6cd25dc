/* Takes what the C library keeps of static thread-local storage for libraries that come late. */
__attribute__((tls_model("initial-exec"))) __thread long taken[SIZE / sizeof(long)];

long *hungry(void)
{
    return taken;
}
