/* The other half. */
#include <math.h>
#include <stdio.h>

double two(double x) {
    printf("%f\n", x);
    return x > 9 ? pow(x, x) : 0;
}
