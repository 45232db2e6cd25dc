/* Half a program: the other half is inlined here when the linker optimizes. */
#include <math.h>

double two(double x);

int main(int count, char **arguments) {
    (void)arguments;
    return (int)two(count + sin(count));
}
