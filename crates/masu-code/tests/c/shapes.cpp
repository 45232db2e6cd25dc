/* C++ in two objects: templates and inline variables in COMDAT groups, globals with constructors
 * and destructors, exceptions through both. PART 0 is both in one program. */
#include "shapes.h"

#if PART != 2
long other_part(int depth) __attribute__((noinline));

extern "C" long check() {
    long sum = 0;
    std::vector<std::unique_ptr<Shape>> shapes;
    shapes.emplace_back(new Square<3>);
    shapes.emplace_back(new Square<5>);
    shapes.emplace_back(new Square<7>);
    for (auto &shape : shapes) {
        try {
            sum = sum * 100 + shape->area();
        } catch (const std::exception &error) {
            sum = sum * 100 + (long)std::string(error.what()).size();
        }
    }
    for (int depth = 0; depth < 4; depth++) {
        try {
            sum += other_part(depth);
        } catch (int thrown) {
            sum += thrown * 1000;
        }
    }
    sum = sum * 10 + ticket() % 7 + table()[2];
    sum += log_of_all.seen["loaded"] * 3;
    return sum;
}
#endif

#if PART != 1
Log log_of_all;
Log::Log() { seen["loaded"] = 14; }
Log::~Log() { seen.clear(); }

long other_part(int depth) {
    struct Guard {
        long &value;
        ~Guard() { value++; }
    };
    static long unwound = 0;
    Guard guard{unwound};
    if (depth > 2)
        throw 7;
    return ticket() + table()[depth] + Square<4>().area() + unwound;
}
#endif

#ifdef WITH_MAIN
#include <cstdio>
int main() {
    std::printf("%ld\n", check());
    return 0;
}
#endif
