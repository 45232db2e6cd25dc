// Whole classes of the standard library, instantiated: real templates, many and deep.
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

template class std::vector<std::string>;
template class std::deque<std::shared_ptr<int>>;
template class std::map<std::string, std::vector<double>>;
template class std::unordered_map<std::string, std::map<int, std::string>>;
template class std::function<std::string(const std::vector<std::string> &)>;
