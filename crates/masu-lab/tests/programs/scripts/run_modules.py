"""Runs modules of CPython's test suite; prints what does not depend on time."""

import contextlib
import sys
import unittest

try:
    import test.support
except ImportError:
    sys.exit("the test modules are missing: apt-get install libpython3.11-testsuite")

test.support.use_resources = []
passed = 0
names = open(sys.argv[1]).read().split()
for name in names:
    suite = unittest.defaultTestLoader.loadTestsFromName(name)
    result = unittest.TestResult()
    # What tests print themselves holds addresses and times.
    with contextlib.redirect_stdout(sys.stderr):
        suite.run(result)
    print(name, result.testsRun, "skipped", len(result.skipped))
    for kind in ("failures", "errors"):
        for case, trace in getattr(result, kind):
            print(" ", kind, case.id())
            print(trace, file=sys.stderr)
    passed += result.wasSuccessful()
print(passed, "of", len(names), "modules passed")
if not passed:
    sys.exit("none of them could be run: apt-get install libpython3.11-testsuite")
