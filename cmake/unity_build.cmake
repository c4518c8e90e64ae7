# SPDX-License-Identifier: Apache-2.0
# With CMAKE_UNITY_BUILD, as in most presets, several files of a target are compiled together, which takes less than
# half the time.  Hence the names in the anonymous namespaces of a folder's files differ.
#
# Each kernel is compiled once for each instruction set, which includes its file again.
file(GLOB_RECURSE kernels CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/vitrail/kernels/*.cpp)
set_property(SOURCE ${kernels} DIRECTORY ${PROJECT_SOURCE_DIR}/vitrail PROPERTY SKIP_UNITY_BUILD_INCLUSION ON)
