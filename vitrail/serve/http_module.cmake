# SPDX-License-Identifier: Apache-2.0
# The HTTP module, which is loaded by `vitrail serve`, so that the other commands do not load a server.  Without Boost's
# headers (Debian: libboost-dev) it is not built, and `vitrail serve` is an error.
if(VITRAIL_SERVE)
  find_path(VITRAIL_boost_INCLUDE boost/beast.hpp)
  mark_as_advanced(VITRAIL_boost_INCLUDE)
  if(VITRAIL_boost_INCLUDE)
    vitrail_add_module(vitrail_serve runtime serve/http_module.cpp serve/http_session.cpp)
    target_include_directories(vitrail_serve SYSTEM PRIVATE ${VITRAIL_boost_INCLUDE})
    target_link_libraries(vitrail_serve PRIVATE Threads::Threads)
    target_compile_options(vitrail_serve PRIVATE ${VITRAIL_LIGHT_OPTIMIZATION})
  else()
    message(STATUS "Boost was not found: without the module vitrail_serve, there is no `vitrail serve`")
  endif()
endif()
