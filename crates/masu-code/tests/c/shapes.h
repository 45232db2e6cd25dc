#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

struct Shape {
    virtual ~Shape() {}
    virtual long area() const = 0;
};

template <int Side> struct Square : Shape {
    long area() const override {
        if (Side > 5)
            throw std::out_of_range("side " + std::to_string(Side));
        return Side * Side;
    }
};

// One in all objects: an inline function with a variable of its own.
inline long ticket() {
    static long next = 100;
    return next++;
}

inline const std::vector<int> &table() {
    static const std::vector<int> values = {3, 1, 4, 1, 5};
    return values;
}

struct Log {
    std::map<std::string, long> seen;
    Log();
    ~Log();
};
extern Log log_of_all;
long other_part(int depth);
