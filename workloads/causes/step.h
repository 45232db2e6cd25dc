/* step.h: the function that each of many libraries holds: about 200 bytes of arithmetic that no compiler
 * shortens. */
#ifndef STEP_H
#define STEP_H

#include <stdint.h>

static inline uint64_t step_of(uint64_t value) {
    value = (value ^ value >> 7) * 0x9e3779b97f4a7c15u;
    value = (value ^ value >> 11) * 0xbf58476d1ce4e5b9u;
    value = (value ^ value >> 13) * 0x94d049bb133111ebu;
    value = (value ^ value >> 17) * 0xd6e8feb86659fd93u;
    value = (value ^ value >> 19) * 0xff51afd7ed558ccdu;
    value = (value ^ value >> 23) * 0xc4ceb9fe1a85ec53u;
    value = (value ^ value >> 29) * 0x2545f4914f6cdd1du;
    value = (value ^ value >> 31) * 0x369dea0f31a53f85u;
    return value + 1;
}

#endif
