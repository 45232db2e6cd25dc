/* A program that calls what masu.h declares beyond the malloc family. The argument names a group. */
#include <errno.h>
#include <masu.h>

#include "served.h"

GROUP(version) {
    printf("%s\n%d\n%s\n", MASU_VERSION, MASU_VERSION_NUMBER, masu_version());
}

GROUP(options) {
    size_t value = 7, count = 0;
    while (masu_option_name(count)) {
        CHECK(masu_option_get(masu_option_name(count), &value) == 0);
        CHECK(masu_option_set(masu_option_name(count), MASU_UNSET) == 0);
        count++;
    }
    CHECK(count >= 11 && !masu_option_name((size_t)-1));
    CHECK(masu_option_get("huge_pages", &value) == 0 && value == 1);
    CHECK(masu_option_get("retain", &value) == 0 && value == MASU_UNSET);
    CHECK(masu_option_set("retain", 1 << 20) == 0);
    CHECK(masu_option_get("retain", &value) == 0 && value == 1 << 20);
    CHECK(masu_option_parse("retain", "64M") == 0);
    CHECK(masu_option_get("retain", &value) == 0 && value == 64 << 20);
    errno = 0;
    CHECK(masu_option_parse("retain", "much") == EINVAL);
    CHECK(masu_option_parse("retain", "") == EINVAL);
    CHECK(masu_option_set("shards", 61) == EINVAL);
    CHECK(masu_option_set("shard", 1) == ENOENT);
    CHECK(masu_option_get("", &value) == ENOENT);
    CHECK(masu_option_get(NULL, &value) == ENOENT && masu_option_get("retain", NULL) == EINVAL);
    CHECK(masu_option_set(NULL, 1) == ENOENT && masu_option_parse(NULL, "1") == ENOENT);
    CHECK(masu_option_parse("retain", NULL) == EINVAL);
    CHECK(errno == 0);
    CHECK(masu_option_get("retain", &value) == 0 && value == 64 << 20);
    CHECK(masu_option_set("retain", MASU_UNSET) == 0);
    CHECK(masu_option_get("retain", &value) == 0 && value == MASU_UNSET);
}

static const char *name, *threshold;

/* Prints the value that holds for an option; with another argument, after mallopt was called with it. */
GROUP(show) {
    size_t value;
    if (threshold) {
        CHECK(mallopt(M_TRIM_THRESHOLD, atoi(threshold)) == 1);
    }
    CHECK(masu_option_get(name, &value) == 0);
    printf("%zu\n", value);
}

GROUP(parameters) {
    int parameter;
    for (parameter = -8; parameter <= 4; parameter++) {
        CHECK(mallopt(parameter, 0) == (parameter != 0));
    }
    CHECK(mallopt(-9, 0) == 0 && mallopt(5, 0) == 0 && mallopt(0x7fffffff, 0) == 0);
}

int main(int count, char **arguments) {
    name = count > 2 ? arguments[2] : NULL;
    threshold = count > 3 ? arguments[3] : NULL;
    return run_group(count, arguments, 300);
}
