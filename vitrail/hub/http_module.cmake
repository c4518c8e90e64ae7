# SPDX-License-Identifier: Apache-2.0
# The HTTP module, which is loaded to download models of the hub, so that the library and the program do not link
# libcurl.  Without its development files (Debian: libcurl4-openssl-dev) it is not built, and models of the hub are
# found in the cache alone.
if(VITRAIL_HUB)
  find_package(CURL 7.85 QUIET)
  if(CURL_FOUND)
    add_library(vitrail_http MODULE hub/http_module.cpp)
    # The program's own folder, which is searched first.
    set_target_properties(vitrail_http PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}
                                                  CXX_VISIBILITY_PRESET hidden)
    target_include_directories(vitrail_http PRIVATE ${PROJECT_SOURCE_DIR})
    target_link_libraries(vitrail_http PRIVATE CURL::libcurl)
    if(VITRAIL_INSTALL)
      install(TARGETS vitrail_http LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/vitrail COMPONENT runtime)
    endif()
  else()
    message(STATUS "libcurl was not found: without the module vitrail_http, models of the hub are not downloaded")
  endif()
endif()
