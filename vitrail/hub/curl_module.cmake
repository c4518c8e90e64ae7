# SPDX-License-Identifier: Apache-2.0
# The libcurl module, which is loaded to download models of the hub, so that the library and the program do not link
# libcurl.  Without its development files (Debian: libcurl4-openssl-dev) it is not built, and models of the hub are
# found in the cache alone.
if(VITRAIL_HUB)
  find_package(CURL 7.85 QUIET)
  if(CURL_FOUND)
    vitrail_add_module(vitrail_curl runtime hub/curl_module.cpp)
    target_link_libraries(vitrail_curl PRIVATE CURL::libcurl)
  else()
    message(STATUS "libcurl was not found: without the module vitrail_curl, models of the hub are not downloaded")
  endif()
endif()
