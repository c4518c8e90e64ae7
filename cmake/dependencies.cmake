# SPDX-License-Identifier: Apache-2.0
# Finds the libraries that vitrail links.  Used by its own build and, through the installed vitrailConfig.cmake, by
# find_package(vitrail).  Reads VITRAIL_ONEDNN.
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
get_property(VITRAIL_languages GLOBAL PROPERTY ENABLED_LANGUAGES)
if(VITRAIL_ONEDNN AND "CXX" IN_LIST VITRAIL_languages)
  find_package(OpenMP REQUIRED COMPONENTS CXX)  # sets the number of oneDNN's threads
elseif(VITRAIL_ONEDNN AND NOT TARGET OpenMP::OpenMP_CXX)  # a project in C, which links the same library
  find_package(OpenMP REQUIRED COMPONENTS C)
  add_library(OpenMP::OpenMP_CXX INTERFACE IMPORTED)
  target_link_libraries(OpenMP::OpenMP_CXX INTERFACE OpenMP::OpenMP_C)
endif()

# Libraries for which Debian 12 has no CMake target in every version.  oneDNN is included because its target requires
# the OpenCL development files, which vitrail does not use.
set(VITRAIL_plain_libraries webp gif tiff utf8proc)
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
