# SPDX-License-Identifier: Apache-2.0
# The libraries that vitrail is linked with, found the same way by its own build and by find_package(vitrail), which
# reads this file beside vitrailConfig.cmake.  Reads VITRAIL_ONEDNN and VITRAIL_PARALLEL.
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
if(VITRAIL_PARALLEL STREQUAL "openmp")
  find_package(OpenMP REQUIRED COMPONENTS CXX)
endif()

# Those that Debian 12 packages without a CMake target of their own, or with one that is not in every version; and
# oneDNN, whose own target insists on OpenCL's development files, which nothing here needs.
set(VITRAIL_plain_libraries webp gif)
if(VITRAIL_ONEDNN)
  list(APPEND VITRAIL_plain_libraries dnnl)
endif()
foreach(library ${VITRAIL_plain_libraries})
  if(NOT TARGET vitrail::${library})
    find_library(VITRAIL_${library}_LIBRARY ${library} REQUIRED)
    mark_as_advanced(VITRAIL_${library}_LIBRARY)
    add_library(vitrail::${library} UNKNOWN IMPORTED)
    set_target_properties(vitrail::${library} PROPERTIES IMPORTED_LOCATION "${VITRAIL_${library}_LIBRARY}")
  endif()
endforeach()
