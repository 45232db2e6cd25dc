// What a test includes in place of all of snmalloc.
#pragma once

#include <snmalloc/snmalloc.h>
