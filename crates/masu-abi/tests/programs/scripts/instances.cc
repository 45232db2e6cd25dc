// Whole classes of the standard library, instantiated: real templates, many and deep.
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <unordered_map>
#include <vector>

template class std::vector<std::string>;
template class std::deque<std::shared_ptr<int>>;
template class std::map<std::string, std::vector<double>>;
template class std::unordered_map<std::string, std::map<int, std::string>>;
template class std::basic_regex<char>;
template class std::match_results<std::string::const_iterator>;

std::string replaced(const std::string &text, const std::function<std::string(int)> &name) {
    static const std::regex number(R"((\d+)(px|em)?\b)");
    return std::regex_replace(text, number, name(static_cast<int>(text.size())));
}
