// googletest with exceptions: thrown and caught by a test, by the library's own matchers, and where nobody else does.
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

struct Cleaned {
    static int count;
    ~Cleaned() { ++count; }
};
int Cleaned::count;

struct Base { virtual ~Base() = default; virtual std::string name() const = 0; };
template <class T> struct Of : Base {
    std::string name() const override { throw std::domain_error(std::to_string(sizeof(T))); }
};
inline std::map<int, std::unique_ptr<Base>> &made() {
    static std::map<int, std::unique_ptr<Base>> all;
    return all;
}

TEST(Throws, AreCaught) {
    made()[1] = std::make_unique<Of<char>>();
    made()[2] = std::make_unique<Of<double>>();
    for (auto &one : made()) {
        try {
            Cleaned cleaned;
            one.second->name();
        } catch (const std::logic_error &error) {
            EXPECT_EQ(std::stoi(error.what()), one.first == 1 ? 1 : 8);
        }
    }
    EXPECT_EQ(Cleaned::count, 2);
}
TEST(Throws, AreSeenByTheLibrary) {
    EXPECT_THROW(std::vector<int>().at(3), std::out_of_range);
    EXPECT_NO_THROW(std::vector<int>(9).at(3));
    EXPECT_ANY_THROW(dynamic_cast<Of<int> &>(*made()[1]));
}
TEST(Throws, FailATestWhereNobodyCatches) { throw std::runtime_error("nobody catches this"); }
TEST(Throws, FailATestWithWhatIsNoException) { throw 5; }

int main(int count, char **words) {
    testing::InitGoogleTest(&count, words);
    testing::GTEST_FLAG(print_time) = false;
    return RUN_ALL_TESTS() != 1;
}
