// What a compiler is asked to compile: a translation unit that takes in much of the standard library and makes
// it instantiate containers, algorithms, streams and variants of its own types.
#include <algorithm>
#include <functional>
#include <iomanip>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <sstream>
#include <string>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>

template <int N> struct Part {
    std::string name;
    std::vector<std::tuple<int, std::string, double>> rows;
    std::map<std::string, std::unordered_map<int, std::unique_ptr<Part>>> children;
    std::variant<int, std::string, std::vector<Part>> value;

    std::optional<double> sum(std::function<bool(const std::string &)> wanted) const {
        double total = 0;
        for (const auto &[number, text, factor] : rows)
            if (wanted(text)) total += number * factor * N;
        for (const auto &[key, some] : children)
            for (const auto &[index, child] : some)
                if (auto inner = child->sum(wanted)) total += *inner + index;
        return total > 0 ? std::optional(total) : std::nullopt;
    }

    std::string show() const {
        std::ostringstream out;
        std::visit([&](const auto &held) {
            using Held = std::decay_t<decltype(held)>;
            if constexpr (std::is_same_v<Held, std::vector<Part>>) {
                for (const auto &part : held) out << part.show() << ' ';
            } else {
                out << held;
            }
        }, value);
        auto sorted = rows;
        std::sort(sorted.begin(), sorted.end(),
                  [](const auto &a, const auto &b) { return std::get<1>(a) < std::get<1>(b); });
        for (const auto &row : sorted) out << std::get<1>(row) << std::setw(N) << std::get<2>(row);
        return name + out.str();
    }
};

template <int... N> std::string all(std::integer_sequence<int, N...>) {
    return (Part<N>{}.show() + ...) + (std::to_string(Part<N>{}.sum([](const auto &text) {
               return text.size() % (N + 2) == 0;
           }).value_or(N)) + ...);
}

std::string work() { return all(std::make_integer_sequence<int, 4>{}); }
