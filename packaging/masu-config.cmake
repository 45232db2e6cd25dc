# find_package(masu): the targets masu::masu (libmasu.so), masu::static (libmasu.a) and masu::secure (libmasu-secure.so).
# A program that links one of them has masu's malloc, its libraries too.

if(TARGET masu::masu)
  return()
endif()

set(masu_libraries "@PREFIX@/@LIBRARIES@")

foreach(kind masu secure static)
  if(kind STREQUAL "static")
    add_library(masu::static STATIC IMPORTED)
    set(masu_file libmasu.a)
  else()
    add_library(masu::${kind} SHARED IMPORTED)
    set(masu_file libmasu.so)
    if(kind STREQUAL "secure")
      set(masu_file libmasu-secure.so)
    endif()
  endif()
  set_target_properties(masu::${kind} PROPERTIES
    IMPORTED_LOCATION "${masu_libraries}/${masu_file}"
    INTERFACE_INCLUDE_DIRECTORIES "@PREFIX@/include")
endforeach()

# Nothing of a program calls masu by name, so a linker that drops libraries without a caller would drop it.
set_target_properties(masu::masu masu::secure PROPERTIES INTERFACE_LINK_OPTIONS "LINKER:--no-as-needed")
find_package(Threads REQUIRED)
# A shared library with masu inside must stay when it is closed: threads and fork call masu until the process ends.
set_target_properties(masu::static PROPERTIES
  INTERFACE_LINK_LIBRARIES Threads::Threads
  INTERFACE_LINK_OPTIONS "LINKER:-z,nodelete")
