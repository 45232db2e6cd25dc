# What CMake reads first: whether this version fits the program's request.
set(PACKAGE_VERSION "@VERSION@")
if(NOT PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
