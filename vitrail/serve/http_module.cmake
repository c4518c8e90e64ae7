# SPDX-License-Identifier: Apache-2.0
# The HTTP module, which is loaded by `vitrail serve`, so that the other commands do not load a server.  Without Boost's
# headers (Debian: libboost-dev) it is not built, and `vitrail serve` is an error.
if(VITRAIL_SERVE)
  find_path(VITRAIL_boost_INCLUDE boost/beast.hpp)
  mark_as_advanced(VITRAIL_boost_INCLUDE)
  if(VITRAIL_boost_INCLUDE)
    add_library(vitrail_serve MODULE serve/http_module.cpp serve/http_session.cpp)
    # The program's own folder, which is searched first.
    set_target_properties(vitrail_serve PROPERTIES
      PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR} CXX_VISIBILITY_PRESET hidden)
    target_include_directories(vitrail_serve PRIVATE ${PROJECT_SOURCE_DIR})
    target_include_directories(vitrail_serve SYSTEM PRIVATE ${VITRAIL_boost_INCLUDE})
    target_link_libraries(vitrail_serve PRIVATE Threads::Threads)
    target_compile_options(vitrail_serve PRIVATE ${VITRAIL_LIGHT_OPTIMIZATION})
    if(VITRAIL_INSTALL)
      install(TARGETS vitrail_serve LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/vitrail COMPONENT runtime)
    endif()
  else()
    message(STATUS "Boost was not found: without the module vitrail_serve, there is no `vitrail serve`")
  endif()
endif()
